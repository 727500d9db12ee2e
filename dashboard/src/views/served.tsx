// An application that is served: how its workers stand, and its newest requests as a run, by the views that saved runs have.

import { useEffect, useState } from "preact/hooks";
import { get, type Served } from "../api";
import { Chart } from "../chart";
import { colourOf } from "../colours";
import { digits, percent, plural, span } from "../format";
import { Card, Empty, Table, Tile } from "../parts";
import { type State, state as page } from "../state";
import { type SavedRun, type ServingRun, packed } from "../run";
import { ServingWorkers } from "./workers";
import { Graph, RequestPage, Requests, Workflows } from "./workflows";

const KEPT = 300;
const past: { at: number; replied: number; open: number; waiting: number }[] = [];
const total = (served: Served, fact: "replied" | "open" | "waiting" | "hits" | "misses" | "loads" | "evictions" | "in_time" | "late"): number =>
  served.workers.reduce((sum, worker) => sum + (worker[fact] ?? 0), 0);

/** Write down how things stand, for the lines; the page has only what it saw itself. */
export function note(served: Served): void {
  const at = Date.now() / 1000;
  if (past.length && at - past[past.length - 1].at < 1) return;
  past.push({ at, replied: total(served, "replied"), open: total(served, "open"), waiting: total(served, "waiting") });
  if (past.length > KEPT) past.shift();
}

export function ServedOverview({ state }: { state: State }) {
  const served = state.served!;
  note(served);
  const hits = total(served, "hits");
  const asked = hits + total(served, "misses");
  const due = total(served, "in_time") + total(served, "late");
  const rates = past.map((one, k) => (k ? Math.max(one.replied - past[k - 1].replied, 0) / (one.at - past[k - 1].at) : null));
  const begin = past[0]?.at ?? 0;
  return (
    <>
      <div class="tiles">
        <Tile name="Workers" value={`${served.workers.filter((worker) => worker.present).length} of ${served.workers.length}`} note={`answer; ${digits(served.restarts)} restarts`} />
        <Tile name="Open requests" value={digits(total(served, "open"))} note={`${digits(total(served, "waiting"))} stages wait`} />
        <Tile name="Answered" value={digits(total(served, "replied"))} note="since the workers started" href="#/requests" />
        <Tile name="In time (SLO)" value={percent(due ? total(served, "in_time") / due : null)} note={due ? `of ${plural(due, "answer")} with an SLO` : "no answer had an SLO"} href="#/workflows" />
        <Tile name="Model in memory" value={percent(asked ? hits / asked : null)} note={`${digits(total(served, "loads"))} loads, ${digits(total(served, "evictions"))} evictions`} />
        <Tile name="Scheduler" value={served.scheduler} note={served.emulated ? "emulated accelerators" : "GPUs"} />
      </div>
      <Card title="Answers per second" note="Since this page was opened.">
        {past.length > 2 ? <Chart label="Answers per second" time={past.map((one) => one.at - begin)} beginsAt={begin} lines={[{ name: "answers/s", values: rates, colour: colourOf(0), fill: true }, { name: "open requests", values: past.map((one) => one.open), colour: colourOf(1) }]} /> : <Empty>In a moment.</Empty>}
      </Card>
      <Standing served={served} />
    </>
  );
}

/** Which parts of a worker models have, and what of that nothing holds. */
function slices(served: Served): string | undefined {
  const parts = Object.entries(served.slices ?? {}).map(([model, own]) => `${model} ${digits(own.part)}`);
  if (!parts.length) return undefined;
  return [`Slices of a worker: ${parts.join(", ")}.`, ...(served.not_enforced ?? []).map((said) => `Not enforced: ${said}.`)].join(" ");
}

function Standing({ served }: { served: Served }) {
  return (
    <Card title="Workers now" note={slices(served)}>
      <Table
        label="Workers" rows={served.workers} keyOf={(worker) => worker.number}
        columns={[
          { name: "worker", cell: (worker) => worker.number },
          { name: "answers", cell: (worker) => (worker.present ? "yes" : "no") },
          { name: "open", number: true, cell: (worker) => digits(worker.open) },
          { name: "stages wait", number: true, cell: (worker) => digits(worker.waiting) },
          { name: "models in memory", cell: (worker) => (worker.resident ?? []).join(", ") },
          { name: "hits", number: true, cell: (worker) => digits(worker.hits) },
          { name: "misses", number: true, cell: (worker) => digits(worker.misses) },
          { name: "loads", number: true, cell: (worker) => digits(worker.loads) },
          { name: "evictions", number: true, cell: (worker) => digits(worker.evictions) },
        ]}
      />
    </Card>
  );
}

const LOOK_MS = 5000;

/** The newest requests as a run, asked for again now and then while a view shows them. */
export function ServedHistory({ state, view, rest }: { state: State; view: string; rest: string[] }) {
  const [saved, setSaved] = useState<SavedRun | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [held, setHeld] = useState(false);
  const still = held || rest.length > 0; // numbers of requests are those of one answer
  useEffect(() => {
    let gone = false;
    const look = () => {
      if (document.hidden && saved) return;
      get<SavedRun>("history").then((found) => { if (!gone) { setSaved(found); setTrouble(null); } }).catch((error) => { if (!gone) setTrouble((error as Error).message); });
    };
    if (!still || !saved) look();
    const timer = still ? undefined : setInterval(look, LOOK_MS);
    return () => { gone = true; clearInterval(timer); };
  }, [page.session === null, still]);
  const run = saved?.runs[0] as ServingRun | undefined;
  if (!run || !saved) return trouble ? <p class="trouble" role="alert">{trouble}</p> : <Empty>Asking the server…</Empty>;
  const count = run.requests.arrival.length;
  return (
    <>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      {rest.length === 0 && (
        <p class="tools">
          <button type="button" aria-pressed={held} onClick={() => setHeld(!held)}>{held ? "Go on" : "Hold still"}</button>
          <button type="button" onClick={() => void keep(saved)} disabled={count === 0}>Save these</button>
          <span class="faint" role="status">{`The newest ${plural(count, "request")}${count ? `, of the last ${span(run.end)}` : ""}, as the workers remember them${still ? "; held still" : ""}.`}</span>
        </p>
      )}
      {count === 0 ? <Empty>No request has come since the workers started.</Empty>
        : view === "requests" ? (rest.length ? <RequestPage run={run} number={Number(rest[0])} /> : <Requests run={run} />)
        : view === "workers" ? <ServingWorkers run={run} />
        : <Workflows run={run} />}
      {view === "workflows" && count === 0 && <Outlines />}
      {view === "workers" && state.served && <Standing served={state.served} />}
    </>
  );
}

async function keep(saved: SavedRun): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await packed(saved));
  link.download = "served.fairway";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The graphs of the workflows, where nothing has run yet. */
function Outlines() {
  const [flows, setFlows] = useState<{ name: string; stages: string[]; edges: number[][]; slo_seconds: number | null; budgets: number[] | null }[]>([]);
  useEffect(() => { void get<{ workflows: typeof flows }>("workflows").then(({ workflows }) => setFlows(workflows)).catch(() => undefined); }, []);
  return (
    <>
      {flows.map((flow, k) => (
        <Card key={flow.name} title={flow.name} note={flow.slo_seconds === null ? "It has no SLO." : `Should be answered within ${span(flow.slo_seconds)}.`}>
          <Graph flow={flow} colour={colourOf(k)} lines={(stage) => (flow.budgets ? [`budget ${span(flow.budgets[stage])} of the SLO`] : ["did not run yet"])} />
        </Card>
      ))}
    </>
  );
}
