// What the page knows, and who wants to hear of it: one object, and a redraw at most once a frame after it has changed.

import { useLayoutEffect, useState } from "preact/hooks";
import type { Served, Session, Status, Worker } from "./api";
import type { Run, SavedRun } from "./run";

export interface State {
  /** Where the page comes from: a controller, a server of an application, or a file. */
  server: "up" | "serve" | null;
  /** Whether the server answers nobody without a token. */
  locked: boolean;
  session: Session | null;
  saved: SavedRun | null;
  name: string;
  chosen: number;
  run: Run | null;
  status: Status | null;
  served: Served | null;
  workers: Worker[] | null;
  /** One sentence about what is wrong, shown until it is right again. */
  trouble: string | null;
  notice: string | null;
  loading: boolean;
  changes: number;
}

export const state: State = {
  server: null, locked: false, session: null, saved: null, name: "", chosen: 0, run: null, status: null, served: null, workers: null,
  trouble: null, notice: null, loading: false, changes: 0,
};

const listeners = new Set<() => void>();
let asked = false;

export function change(part: Partial<State>): void {
  Object.assign(state, part);
  state.changes += 1;
  if (asked) return;
  asked = true;
  // A page in the background draws nothing, nor does one that the browser takes to be covered, but neither should fall
  // behind for ever.
  const draw = () => {
    if (!asked) return;
    asked = false;
    listeners.forEach((listener) => listener());
  };
  if (!document.hidden) requestAnimationFrame(draw);
  setTimeout(draw, document.hidden ? 1000 : 250);
}

export function useState_(): State {
  const [, redraw] = useState(0);
  // Not after the first paint: what changes before it would be missed.
  useLayoutEffect(() => {
    const listener = () => redraw((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

export function useHash(): string[] {
  const [hash, set] = useState(location.hash);
  useLayoutEffect(() => {
    const listener = () => set(location.hash);
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, []);
  return hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
}
