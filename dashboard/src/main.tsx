// The page: which run it shows and where that comes from, the views, the theme, logging in and out.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { hasKey, logIn, logOut } from "./api";
import { start, stop } from "./live";
import { digits } from "./format";
import { Tile } from "./parts";
import { packed, readRun } from "./run";
import { change, state, useHash, useState_ } from "./state";
import "./style.css";
import { Compare } from "./views/compare";
import { Curves } from "./views/curves";
import { Decisions } from "./views/decisions";
import { Docs } from "./views/docs";
import { JobPage, Jobs } from "./views/jobs";
import { Origin, Overview } from "./views/overview";
import { Plan } from "./views/plan";
import { ServedHistory, ServedOverview } from "./views/served";
import { Teams } from "./views/teams";
import { ServingWorkers, TrainingWorkers } from "./views/workers";
import { RequestPage, Requests, Workflows } from "./views/workflows";

const THEMES = ["auto", "light", "dark"];

function views(): [string, string][] {
  if (state.served && state.saved === null) return [["", "Overview"], ["workflows", "Workflows"], ["requests", "Requests"], ["workers", "Workers"]];
  const run = state.run;
  if (run?.kind === "curves") return [["", "Results"]];
  const compare: [string, string][] = state.server === null ? [["compare", (state.saved?.runs.length ?? 0) > 1 ? "Compare" : "Results"]] : [];
  if (run?.kind === "serving") return [["", "Overview"], ...compare, ["workflows", "Workflows"], ["requests", "Requests"], ["workers", "Workers"]];
  const all: [string, string][] = [["", "Overview"], ...compare, ["jobs", "Jobs"], ["teams", "Teams"], ["workers", "Workers"], ["decisions", "Decisions"], ["plan", "Plan"]];
  if (state.server === "up") all.push(["api", "API"]);
  return all;
}

function View({ path }: { path: string[] }) {
  const [view, ...rest] = path;
  const run = state.run;
  if (view === "api" && state.server === "up") return <Docs />;
  if (state.served && !run) {
    const known = ["workflows", "requests", "workers"].includes(view);
    return known ? <ServedHistory state={state} view={view} rest={rest} /> : <ServedOverview state={state} />;
  }
  if (!run) return null;
  if (run.kind === "curves") return <><Curves run={run} /><Origin state={state} /></>;
  if (view === "compare" && state.saved) return <Compare saved={state.saved} chosen={state.chosen} />;
  if (run.kind === "serving") {
    if (view === "workflows") return <Workflows run={run} />;
    if (view === "requests") return rest.length ? <RequestPage run={run} number={Number(rest[0])} /> : <Requests run={run} />;
    if (view === "workers") return <ServingWorkers run={run} />;
    return <Overview state={state} />;
  }
  if (view === "jobs") return rest.length ? <JobPage key={rest[0]} run={run} state={state} id={rest[0]} /> : <Jobs run={run} state={state} />;
  if (view === "teams") return <Teams run={run} />;
  if (view === "workers") return <TrainingWorkers run={run} state={state} />;
  if (view === "decisions") return <Decisions run={run} state={state} chosen={rest.length ? Number(rest[0]) : undefined} />;
  if (view === "plan") return <Plan state={state} />;
  return <Overview state={state} />;
}

function App() {
  useState_();
  const path = useHash();
  const [over, setOver] = useState(false);
  const named = views().find(([view]) => view === (path[0] ?? ""))?.[1] ?? "Overview";
  useEffect(() => {
    document.title = `${named}${state.name && state.server === null ? `, ${state.name}` : ""}: Fairway`;
  }, [named, state.name]);
  const logged = state.server === null || state.session !== null;
  const shows = state.run !== null || state.served !== null;
  return (
    <div
      class={over ? "over" : ""}
      onDragOver={(event: DragEvent) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event: DragEvent) => {
        event.preventDefault();
        setOver(false);
        const file = event.dataTransfer?.files[0];
        if (file) void open(file);
      }}
    >
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
      <header>
        <a class="brand" href="#/"><svg width="22" height="22" viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h9v3H1zM4 7h11v3H4zM2 11h7v3H2z" fill="currentColor" /></svg>Fairway</a>
        {shows && (
          <nav aria-label="Views">
            {views().map(([view, name]) => <a key={view} href={`#/${view}`} aria-current={(path[0] ?? "") === view ? "page" : undefined}>{name}</a>)}
          </nav>
        )}
        <div class="right">
          {state.saved && state.saved.runs.length > 1 && (
            <label>Run <select value={state.chosen} onChange={(event) => change({ chosen: Number(event.currentTarget.value), run: state.saved!.runs[Number(event.currentTarget.value)] })}>
              {state.saved.runs.map((run, k) => <option key={k} value={k}>{run.label}</option>)}
            </select></label>
          )}
          <label class="button">Open a run<input type="file" accept=".fairway" class="hidden" onChange={(event) => { const file = event.currentTarget.files?.[0]; if (file) void open(file); event.currentTarget.value = ""; }} /></label>
          {state.server !== "serve" && state.run && <button type="button" onClick={() => void save()}>Save</button>}
          <Theme />
          {state.server !== null && state.session && <span class="who" title={`role: ${state.session.role}`}>{state.session.team ? `${state.session.name} (${state.session.team})` : state.session.name}</span>}
          {state.server !== null && state.session && state.session.name !== "no token needed" && <button type="button" onClick={() => void leave()}>Log out</button>}
        </div>
      </header>
      {state.trouble && <p class="banner" role="alert">{state.trouble}</p>}
      {state.notice && <p class="banner note" role="status">{state.notice} <button type="button" class="plain" onClick={() => change({ notice: null })} aria-label="Close this message">✕</button></p>}
      {state.server === null && state.name && state.run && <p class="banner plain-banner"><strong>{state.name}</strong> {state.saved?.origin.kind ?? "saved"}: {state.run.label}</p>}
      {!logged && <Login />}
      <main id="main" tabIndex={-1} aria-label={named}>
        {shows && path.length < 2 && <h1 class="hidden">{named}</h1>}
        {shows ? <View path={path} /> : state.status && logged ? <Quick status={state.status} /> : logged && <Nothing />}
      </main>
    </div>
  );
}

/** How things stand, until the history is there. */
function Quick({ status }: { status: NonNullable<typeof state.status> }) {
  const workers = Object.values(status.workers);
  const sum = (of: (one: (typeof workers)[number]) => number | undefined) => workers.reduce((all, one) => all + (of(one) ?? 0), 0);
  return (
    <>
      <div class="tiles">
        <Tile name="Workers busy" value={`${sum((one) => one.busy)} of ${sum((one) => one.total)}`} note={Object.keys(status.workers).join(", ")} />
        <Tile name="Waiting" value={digits(status.jobs.queued ?? 0)} />
        <Tile name="Running" value={digits((status.jobs.running ?? 0) + (status.jobs.preempting ?? 0))} note={`${digits(status.jobs.succeeded ?? 0)} succeeded, ${digits(status.jobs.failed ?? 0)} failed`} />
        <Tile name="Policy" value={status.policy} note={status.emulated ? "emulated accelerators" : ""} />
      </div>
      <p class="faint empty" role="status">Reading the history…</p>
    </>
  );
}

function Nothing() {
  if (state.loading) return <p class="faint empty" role="status">Loading…</p>;
  if (state.server !== null) return <p class="faint empty" role="status">Asking the server…</p>;
  return (
    <section class="card welcome">
      <h1>No run is open</h1>
      <p>Drop a saved run here, or open one. Any simulation writes one with <code>--save run.fairway</code>, and a live cluster with <code>fairway history export run.fairway</code>.</p>
    </section>
  );
}

function Login() {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  return (
    <form
      class="card login"
      onSubmit={(event) => {
        event.preventDefault();
        setBusy(true);
        logIn(token.trim())
          .then((session) => {
            setToken("");
            change({ session, trouble: null });
            void start();
          })
          .catch((error) => setTrouble(error.message))
          .finally(() => setBusy(false));
      }}
    >
      <h1>Log in</h1>
      <input type="text" class="hidden" autocomplete="username" value="Fairway" readOnly tabIndex={-1} aria-hidden="true" />
      <label>Token
        <input type="password" autocomplete="current-password" value={token} required spellcheck={false} onInput={(event) => setToken(event.currentTarget.value)} aria-describedby="token-help" />
      </label>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      <button type="submit" class="primary" disabled={busy}>Log in</button>
      <p id="token-help" class="faint">{state.server === "up" ? "The server says where the admin's token is when it starts: DIRECTORY/token. An admin makes others with: fairway token create." : "The server says where its token is when it starts: DIRECTORY/token."}</p>
    </form>
  );
}

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem("fairway-theme") ?? "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem("fairway-theme", theme);
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const tell = () => dispatchEvent(new Event("themechange"));
    media.addEventListener("change", tell);
    return () => media.removeEventListener("change", tell);
  }, []);
  return <label>Theme <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>{THEMES.map((one) => <option key={one}>{one}</option>)}</select></label>;
}

async function open(file: File): Promise<void> {
  try {
    show(await readRun(new Uint8Array(await file.arrayBuffer()), file.name), file.name);
  } catch (error) {
    change({ notice: (error as Error).message });
  }
}

function show(saved: Awaited<ReturnType<typeof readRun>>, name: string): void {
  stop();
  // Of several runs, what differs between them comes first.
  if (saved.runs.length > 1 && saved.runs[0].kind !== "curves" && /^#?\/?$/.test(location.hash)) {
    history.replaceState(null, "", "#/compare");
    dispatchEvent(new Event("hashchange"));
  }
  change({ saved, name, chosen: 0, run: saved.runs[0], server: null, served: null, status: null, workers: null, trouble: null, notice: null, loading: false });
}

async function save(): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await packed(state.server === null ? state.saved! : { ...state.saved!, runs: [state.run!] }));
  link.download = "run.fairway";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function leave(): Promise<void> {
  stop();
  await logOut();
  change({ session: null, saved: null, run: null, served: null, status: null, workers: null, trouble: null });
}

async function begin(): Promise<void> {
  const place = document.getElementById("app")!;
  const kept = document.getElementById("run");
  state.server = (place.dataset.server as "up" | "serve" | undefined) ?? null;
  state.locked = state.server !== null && place.dataset.open === undefined;
  state.loading = kept !== null || hasKey();
  if (location.pathname.endsWith("/docs") && !location.hash) history.replaceState(null, "", "./#/api");
  render(<App />, place);
  if (kept !== null) {
    try {
      const bytes = Uint8Array.from(atob(kept.textContent!.trim()), (letter) => letter.charCodeAt(0));
      show(await readRun(bytes, kept.dataset.name ?? "run"), kept.dataset.name ?? "run");
    } catch (error) {
      change({ notice: (error as Error).message, loading: false });
    }
  } else if (state.server !== null) await start();
}

void begin();
