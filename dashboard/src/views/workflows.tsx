// Workflows: the graph of each, with waits, run times, batches and hits by stage; requests, and one of them as a waterfall.

import { useMemo, useState } from "preact/hooks";
import { colourOf } from "../colours";
import { digits, dollars, moment, percent, span } from "../format";
import { Gantt, type GanttRow } from "../gantt";
import { type StageFacts, type WorkflowMeasures, workflowMeasures } from "../measures";
import { Badge, Card, Empty, Table, Tile } from "../parts";
import type { ServingRun } from "../run";

export interface Drawn {
  stages: string[];
  edges: number[][];
}

export function Workflows({ run }: { run: ServingRun }) {
  const measures = useMemo(() => workflowMeasures(run), [run]);
  return (
    <>
      {run.workflows.map((flow, k) => (
        <Card key={flow.name} title={flow.name} note={`At least ${span(flow.lower_bound_seconds)}${flow.slo_seconds === null ? "" : `, should be done within ${span(flow.slo_seconds)}`}.`}>
          <FlowTiles facts={measures[k]} />
          <Graph flow={flow} colour={colourOf(k)} lines={(stage) => linesOf(measures[k].stages[stage], flow.budgets?.[stage])} />
          <Stages facts={measures[k].stages} name={flow.name} stages={flow.stages} budgets={flow.budgets} />
        </Card>
      ))}
    </>
  );
}

const linesOf = (facts: StageFacts, budget?: number): string[] => [
  ...(facts.count ? [`runs ${span(facts.run)}, waits ${span(facts.wait)}`, `batch ${digits(facts.batch)}${facts.hits === null ? "" : `, in memory ${percent(facts.hits)}`}`] : ["did not run, or was not kept"]),
  ...(budget === undefined ? [] : [`budget ${span(budget)} of the SLO`]),
];

function FlowTiles({ facts }: { facts: WorkflowMeasures }) {
  return (
    <div class="tiles">
      <Tile name="Requests" value={digits(facts.requests)} note={`${digits(facts.done)} answered`} />
      <Tile name="In time" value={percent(facts.met)} note={facts.met === null ? "no SLO, or no request" : "answered within the SLO"} />
      <Tile name="Mean latency" value={span(facts.mean)} note={`p95 ${span(facts.p95)}, p99 ${span(facts.p99)}`} />
    </div>
  );
}

function Stages({ facts, name, stages, budgets }: { facts: StageFacts[]; name: string; stages: string[]; budgets?: number[] }) {
  const all = facts.reduce((sum, one) => sum + (one.run ?? 0) + (one.wait ?? 0), 0);
  return (
    <Table
      label={`Stages of ${name}`} rows={facts} keyOf={(one) => one.name}
      columns={[
        { name: "stage", cell: (one) => one.name },
        { name: "runs", number: true, sort: (one) => one.count, cell: (one) => digits(one.count) },
        { name: "waits", number: true, sort: (one) => one.wait, cell: (one) => span(one.wait) },
        { name: "mean run", number: true, sort: (one) => one.run, cell: (one) => span(one.run) },
        { name: "p95 run", number: true, sort: (one) => one.p95, cell: (one) => span(one.p95) },
        ...(budgets?.length ? [{ name: "SLO budget", title: "its part of the SLO, by its share of the work; bold where waiting and running take longer on average", number: true, sort: (one: StageFacts) => budgets[stages.indexOf(one.name)], cell: (one: StageFacts) => {
          const budget = budgets[stages.indexOf(one.name)];
          return (one.run ?? 0) + (one.wait ?? 0) > budget ? <strong>{span(budget)}</strong> : span(budget);
        } }] : []),
        { name: "part of the time", number: true, sort: (one) => (one.run ?? 0) + (one.wait ?? 0), cell: (one) => percent(all ? ((one.run ?? 0) + (one.wait ?? 0)) / all : null) },
        { name: "mean batch", number: true, sort: (one) => one.batch, cell: (one) => digits(one.batch) },
        ...(facts.some((one) => one.hits !== null) ? [{ name: "model in memory", number: true, sort: (one: StageFacts) => one.hits, cell: (one: StageFacts) => percent(one.hits) }] : []),
      ]}
    />
  );
}

const WIDE = 196;
const TALL = 72;

/** Stages from left to right, each behind all that it needs. */
export function Graph({ flow, lines, colour }: { flow: Drawn; lines: (stage: number) => string[]; colour: string }) {
  const depth = flow.stages.map(() => 0);
  for (let round = 0; round < flow.stages.length; round++)
    for (const [from, to] of flow.edges) depth[to] = Math.max(depth[to], depth[from] + 1);
  const inColumn: number[] = [];
  const place = flow.stages.map((_, k) => {
    const column = depth[k];
    inColumn[column] = (inColumn[column] ?? 0) + 1;
    return [column, inColumn[column] - 1];
  });
  const most = Math.max(...inColumn, 1);
  const x = (k: number) => place[k][0] * (WIDE + 46) + 4;
  const y = (k: number) => (place[k][1] + (most - inColumn[place[k][0]]) / 2) * (TALL + 16) + 4;
  const width = inColumn.length * (WIDE + 46) - 38;
  const height = most * (TALL + 16) - 8;
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="Graph of the workflow">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Stages: ${flow.stages.join(", ")}`}>
        {flow.edges.map(([from, to]) => {
          const [x1, y1, x2, y2] = [x(from) + WIDE, y(from) + TALL / 2, x(to), y(to) + TALL / 2];
          return <path key={`${from}-${to}`} class="edge" d={`M${x1} ${y1} C${x1 + 24} ${y1} ${x2 - 24} ${y2} ${x2} ${y2}`} />;
        })}
        {flow.stages.map((name, k) => (
          <g key={name} transform={`translate(${x(k)} ${y(k)})`}>
            <rect class="node" width={WIDE} height={TALL} rx="6" style={{ stroke: colour }} />
            <text class="node-name" x="10" y="19">{name.length > 26 ? `${name.slice(0, 25)}…` : name}</text>
            {lines(k).map((line, row) => <text key={line} class="node-line" x="10" y={36 + row * 14}>{line}</text>)}
          </g>
        ))}
      </svg>
    </div>
  );
}

export function Requests({ run }: { run: ServingRun }) {
  const [only, setOnly] = useState("");
  const [late, setLate] = useState(false);
  const { requests } = run;
  const took = (k: number) => (requests.finish[k] === null ? null : requests.finish[k]! - requests.arrival[k]);
  const inTime = (k: number) => {
    const slo = run.workflows[requests.workflow[k]].slo_seconds;
    return slo === null ? null : took(k) !== null && took(k)! <= slo;
  };
  const rows = useMemo(
    () => requests.arrival.map((_, k) => k).filter((k) => (!only || run.workflows[requests.workflow[k]].name === only) && (!late || inTime(k) === false)),
    [run, only, late],
  );
  return (
    <Card title="Requests" note="The slowest say most: sort by latency, and open one.">
      <div class="filters">
        <label>Workflow <select value={only} onChange={(event) => setOnly(event.currentTarget.value)}><option value="">all</option>{run.workflows.map((flow) => <option key={flow.name}>{flow.name}</option>)}</select></label>
        <label><input type="checkbox" checked={late} onChange={(event) => setLate(event.currentTarget.checked)} /> only late ones</label>
        <span class="faint" role="status">{`${rows.length.toLocaleString("en")} of ${requests.arrival.length.toLocaleString("en")}`}</span>
      </div>
      <Table
        label="Requests" rows={rows} keyOf={(k) => k}
        columns={[
          { name: "request", sort: (k) => k, cell: (k) => <a href={`#/requests/${k}`}>{k}</a> },
          { name: "workflow", sort: (k) => requests.workflow[k], cell: (k) => run.workflows[requests.workflow[k]].name },
          { name: "outcome", cell: (k) => <Badge state={requests.outcome[k]} /> },
          { name: "came at", number: true, sort: (k) => requests.arrival[k], cell: (k) => moment(requests.arrival[k], run.begins_at) },
          { name: "latency", number: true, sort: took, cell: (k) => span(took(k)) },
          { name: "slow-down", number: true, sort: (k) => (took(k) === null ? null : took(k)! / run.workflows[requests.workflow[k]].lower_bound_seconds), cell: (k) => (took(k) === null ? "" : `${digits(took(k)! / run.workflows[requests.workflow[k]].lower_bound_seconds)}×`) },
          { name: "in time", cell: (k) => (inTime(k) === null ? "" : inTime(k) ? "yes" : "no") },
          { name: "cost", number: true, sort: (k) => requests.cost[k], cell: (k) => (requests.cost[k] === null ? "" : dollars(requests.cost[k])) },
        ]}
      />
    </Card>
  );
}

const PARTS = ["waits for inputs and its turn", "waits for its model", "fetches its inputs", "runs"];
const COLOURS = ["#8a6100", "#b32d2d", "#6b5bb5", "#1e6fb0"];

/** One request as a waterfall: for each stage, when it waited in a queue, for its model and for its inputs, and when it ran. */
export function RequestPage({ run, number }: { run: ServingRun; number: number }) {
  const { requests, stages } = run;
  const mine = useMemo(() => stages.request.flatMap((request, k) => (request === number ? [k] : [])).sort((a, b) => stages.queued[a] - stages.queued[b]), [run, number]);
  if (!(number >= 0 && number < requests.arrival.length)) return <Card title={`Request ${number}`}><Empty>This run has no such request.</Empty></Card>;
  const flow = run.workflows[requests.workflow[number]];
  const came = requests.arrival[number];
  const finish = requests.finish[number];
  const last = Math.max(finish ?? 0, ...mine.map((k) => stages.end[k]), came + 1e-6);
  const rows: GanttRow[] = mine.map((k) => {
    const turn = Math.min(Math.max(stages.turn[k], stages.queued[k]), stages.start[k]);
    const ready = Math.min(stages.start[k] + stages.fetch[k], stages.end[k]);
    const bounds = [stages.queued[k], turn, stages.start[k], ready, stages.end[k]].map((at) => at - came);
    const parts = PARTS.map((_, part) => part).filter((part) => bounds[part + 1] > bounds[part]);
    return { label: flow.stages[stages.stage[k]], start: parts.map((part) => bounds[part]), end: parts.map((part) => bounds[part + 1]), id: parts.map((part) => k * 4 + part) };
  });
  return (
    <>
      <div class="heading"><h1>{`Request ${number}`}</h1><Badge state={requests.outcome[number]} /><span class="faint">{flow.name}</span></div>
      <div class="tiles">
        <Tile name="Latency" value={span(finish === null ? null : finish - came)} note={flow.slo_seconds === null ? "no SLO" : `SLO ${span(flow.slo_seconds)}`} />
        <Tile name="Slow-down" value={finish === null ? "–" : `${digits((finish - came) / flow.lower_bound_seconds)}×`} note={`of at least ${span(flow.lower_bound_seconds)}`} />
        <Tile name="Came at" value={moment(came, run.begins_at)} note={run.begins_at === null ? "after the begin of the run" : undefined} />
        <Tile name="Workers" value={new Set(mine.map((k) => stages.worker[k])).size} note={[...new Set(mine.map((k) => run.workers.name[stages.worker[k]]))].join(", ")} />
      </div>
      <Card title="Waterfall" note={<>From its arrival on. {PARTS.map((part, k) => <span key={part} class="key"><i style={{ background: COLOURS[k] }} />{part}</span>)}</>}>
        {rows.length ? (
          <Gantt
            rows={rows} end={last - came} label={`Stages of request ${number}`}
            colour={(id) => COLOURS[id % 4]} text={(id) => (id % 4 === 3 ? run.workers.name[stages.worker[id >> 2]] : "")}
            tip={(id, row) => [`${row.label}: ${PARTS[id % 4]}`, `on ${run.workers.name[stages.worker[id >> 2]]}, ${stages.batch[id >> 2]} together; model: ${stages.found[id >> 2]}`]}
          />
        ) : <Empty>The run was saved without its stages, or the request never ran.</Empty>}
      </Card>
      <Card title="Stages">
        <Table
          label="Stages of the request" rows={mine} keyOf={(k) => k}
          columns={[
            { name: "stage", cell: (k) => flow.stages[stages.stage[k]] },
            { name: "worker", cell: (k) => run.workers.name[stages.worker[k]] },
            { name: "waited", number: true, cell: (k) => span(stages.start[k] - stages.queued[k]) },
            { name: "ran", number: true, cell: (k) => span(stages.end[k] - stages.start[k]) },
            { name: "batch", number: true, cell: (k) => digits(stages.batch[k]) },
            { name: "CPUs", number: true, cell: (k) => digits(stages.cpu[k]) },
            { name: "slices", number: true, cell: (k) => digits(stages.gpu[k]) },
            { name: "model", cell: (k) => stages.found[k] },
          ]}
        />
      </Card>
    </>
  );
}
