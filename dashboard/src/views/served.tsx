// An application that is served: its workers, and its workflows with what the server has counted of each stage.

import { useEffect, useState } from "preact/hooks";
import { ask, get, type Served } from "../api";
import { Chart } from "../chart";
import { colourOf } from "../colours";
import { digits, percent, span } from "../format";
import { Card, Empty, Table, Tile } from "../parts";
import { type State, state as page } from "../state";
import { Graph } from "./workflows";

const KEPT = 300;
const past: { at: number; replied: number; open: number; waiting: number }[] = [];
const total = (served: Served, fact: "replied" | "open" | "waiting" | "hits" | "misses" | "loads" | "evictions"): number =>
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
  const rates = past.map((one, k) => (k ? Math.max(one.replied - past[k - 1].replied, 0) / (one.at - past[k - 1].at) : null));
  const begin = past[0]?.at ?? 0;
  return (
    <>
      <div class="tiles">
        <Tile name="Workers" value={`${served.workers.filter((worker) => worker.present).length} of ${served.workers.length}`} note={`answer; ${digits(served.restarts)} restarts`} />
        <Tile name="Open requests" value={digits(total(served, "open"))} note={`${digits(total(served, "waiting"))} stages wait`} />
        <Tile name="Answered" value={digits(total(served, "replied"))} note="since the workers started" />
        <Tile name="Model in memory" value={percent(asked ? hits / asked : null)} note={`${digits(total(served, "loads"))} loads, ${digits(total(served, "evictions"))} evictions`} />
        <Tile name="Scheduler" value={served.scheduler} note={served.emulated ? "emulated accelerators" : "GPUs"} />
      </div>
      <Card title="Answers per second" note="Since this page was opened.">
        {past.length > 2 ? <Chart label="Answers per second" time={past.map((one) => one.at - begin)} beginsAt={begin} lines={[{ name: "answers/s", values: rates, colour: colourOf(0), fill: true }, { name: "open requests", values: past.map((one) => one.open), colour: colourOf(1) }]} /> : <Empty>In a moment.</Empty>}
      </Card>
      <Card title="Workers">
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
    </>
  );
}

interface Flow {
  name: string;
  inputs: string[];
  slo_seconds: number | null;
  stages: string[];
  edges: number[][];
}

interface Sums { [key: string]: { count: number; sum: number } }

export function ServedWorkflows() {
  const [flows, setFlows] = useState<Flow[] | null>(null);
  const [sums, setSums] = useState<Sums>({});
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    let gone = false;
    const again = async () => {
      try {
        if (document.hidden && flows) return;
        const [{ workflows }, text] = await Promise.all([get<{ workflows: Flow[] }>("workflows"), ask("metrics").then((answer) => answer.text())]);
        if (gone) return;
        setFlows(workflows);
        setSums(sumsOf(text));
        setTrouble(null);
      } catch (error) {
        if (!gone) setTrouble((error as Error).message);
      }
    };
    void again();
    const timer = setInterval(() => void again(), 5000);
    return () => { gone = true; clearInterval(timer); };
  }, [page.session === null]);
  const mean = (metric: string, flow: string, stage?: string) => {
    const found = sums[`${metric}|${flow}|${stage ?? ""}`];
    return found?.count ? found.sum / found.count : null;
  };
  const count = (flow: string) => sums[`fairway_serving_latency_seconds|${flow}|`]?.count ?? 0;
  if (!flows) return trouble ? <p class="trouble" role="alert">{trouble}</p> : <Empty>Asking the server…</Empty>;
  return (
    <>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      {flows.map((flow, k) => (
        <Card key={flow.name} title={flow.name} note={`Inputs: ${flow.inputs.join(", ")}${flow.slo_seconds === null ? "" : `; should be answered within ${span(flow.slo_seconds)}`}.`}>
          <div class="tiles">
            <Tile name="Answered" value={digits(count(flow.name))} />
            <Tile name="Mean latency" value={span(mean("fairway_serving_latency_seconds", flow.name))} />
          </div>
          <Graph flow={flow} colour={colourOf(k)} lines={(stage) => [
            `runs ${span(mean("fairway_serving_stage_seconds", flow.name, flow.stages[stage]))}`,
            `waits ${span(mean("fairway_serving_stage_wait_seconds", flow.name, flow.stages[stage]))}`,
          ]} />
        </Card>
      ))}
    </>
  );
}

/** Counts and sums of histograms in Prometheus' text, over all workers, by metric, workflow and stage. */
function sumsOf(text: string): Sums {
  const found: Sums = {};
  for (const line of text.split("\n")) {
    const match = /^(\w+)_(sum|count)\{([^}]*)\} (\S+)/.exec(line);
    if (!match) continue;
    const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(match[3])?.[1] ?? "";
    const key = `${match[1]}|${label("workflow")}|${label("stage")}`;
    const one = (found[key] ??= { count: 0, sum: 0 });
    if (match[2] === "sum") one.sum += Number(match[4]);
    else one.count += Number(match[4]);
  }
  return found;
}
