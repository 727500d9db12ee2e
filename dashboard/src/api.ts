// Asks the server: every request carries the page's half of the token, the browser adds the other as a cookie.

import type { components } from "./openapi";

type Schemas = components["schemas"];
export type Job = Schemas["JobForm"];
export type JobDetails = Schemas["JobDetails"];
export type Status = Schemas["StatusForm"];
export type Worker = Schemas["WorkerForm"];
export type Explanation = Schemas["ExplanationForm"];
export type Session = Omit<Schemas["SessionForm"], "role"> & { role: Schemas["SessionForm"]["role"] | "client" };

export interface Served {
  application: string;
  scheduler: string;
  emulated: boolean;
  memory_bytes: number | null;
  restarts: number;
  slices?: Record<string, { part: number; memory_bytes: number | null }>;
  not_enforced?: string[];
  workers: { number: number; present: boolean; open: number | null; waiting: number | null; resident: string[] | null;
    hits: number | null; misses: number | null; loads: number | null; evictions: number | null; replied: number | null; in_time: number | null; late: number | null }[];
}

/** A request that was refused; `code` stays the same over versions, 0 is a server that cannot be reached. */
export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

const KEY = "fairway-key";

export const hasKey = (): boolean => localStorage.getItem(KEY) !== null;

const headers = (): Record<string, string> => {
  const key = localStorage.getItem(KEY);
  return key === null ? {} : { "Fairway-Key": key };
};

export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { ...options, headers: { ...headers(), ...options.headers }, credentials: "same-origin" });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Refused(0, "unreachable", "the server cannot be reached");
  }
  if (answer.ok) return answer;
  let problem: { code?: string; detail?: string } = {};
  try {
    problem = await answer.json();
  } catch {
    /* no problem document: a proxy answered */
  }
  throw new Refused(answer.status, problem.code ?? "refused", problem.detail ?? answer.statusText);
}

export async function get<T>(path: string): Promise<T> {
  return (await (await ask(path)).json()) as T;
}

export async function post<T>(path: string): Promise<T> {
  return (await (await ask(path, { method: "POST" })).json()) as T;
}

export async function logIn(token: string): Promise<Session> {
  const answer = await ask("session", {
    method: "POST",
    body: JSON.stringify({ token }),
    headers: { "Content-Type": "application/json" },
  });
  const { key, ...session } = (await answer.json()) as Session & { key: string };
  localStorage.setItem(KEY, key);
  return session;
}

export async function logOut(): Promise<void> {
  localStorage.removeItem(KEY);
  await ask("session", { method: "DELETE" }).catch(() => undefined);
}

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Server-sent events, read by fetch since EventSource cannot send the key. Ends when the server ends it. */
export async function* events(path: string, signal: AbortSignal, options: RequestInit = {}): AsyncGenerator<ServerEvent> {
  const answer = await ask(path, { ...options, signal });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop()!;
    for (const part of parts) {
      const found: ServerEvent = { id: null, event: "message", data: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) found.id = line.slice(4);
        else if (line.startsWith("event: ")) found.event = line.slice(7);
        else if (line.startsWith("data: ")) found.data += line.slice(6);
      }
      if (found.data) yield found;
    }
  }
}
