// Workers: a row for each over time. Of training, the jobs that held it; of serving, the stages that ran and the models that came.

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Worker, get } from "../api";
import { GREY, colourOf, colourOfText } from "../colours";
import { digits, moment, percent, span } from "../format";
import { Gantt, type GanttRow } from "../gantt";
import { Card, Empty, Table } from "../parts";
import type { ServingRun, TrainingRun } from "../run";
import { type State, change } from "../state";

const LOOK_MS = 10_000;

export function TrainingWorkers({ run, state }: { run: TrainingRun; state: State }) {
  const [by, setBy] = useState(run.teams.name.length > 1 ? "team" : "job");
  useEffect(() => {
    if (state.server !== "up" || state.session === null) return;
    const look = () => { if (!document.hidden) void get<{ workers: Worker[] }>("workers").then(({ workers }) => change({ workers })).catch(() => undefined); };
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [state.server, state.session === null]);
  const rows = useMemo(() => {
    const { leases, workers } = run;
    const place = new Map<number, number>();
    const found: GanttRow[] = [];
    let before = -1;
    workers.number.forEach((number, row) => {
      const type = workers.type[row];
      place.set(type * 1e6 + number, found.length);
      found.push({ label: `${run.types[type]}/${number}`, group: type !== before ? run.types[type] : undefined, start: [], end: [], id: [] });
      before = type;
    });
    const order = leases.start.map((_, k) => k);
    if (leases.start.some((start, k) => k > 0 && start < leases.start[k - 1])) order.sort((a, b) => leases.start[a] - leases.start[b]);
    for (const k of order)
      for (const number of leases.workers[k]) {
        const row = found[place.get(leases.type[k] * 1e6 + number) ?? -1];
        if (!row) continue;
        row.start.push(leases.start[k]);
        row.end.push(leases.end[k] ?? run.end);
        row.id.push(k);
      }
    return found;
  }, [run]);
  const colours = useMemo(() => {
    const team = new Map(run.teams.name.map((name, k) => [name, colourOf(k)]));
    return run.leases.job.map((job) => (job < 0 ? GREY : by === "team" ? (team.get(run.jobs.team[job] ?? "") ?? GREY) : colourOfText(run.jobs.id[job])));
  }, [run, by]);
  const name = (k: number) => [run.leases.job[k], run.leases.partner[k]].filter((job) => job >= 0).map((job) => run.jobs.id[job]).join(" + ") || "another team";
  return (
    <>
      <Card title="Workers over time">
        <div class="filters">
          <label>Colour by <select value={by} onChange={(event) => setBy(event.currentTarget.value)}><option value="job">job</option><option value="team">team</option></select></label>
          {by === "team" && run.teams.name.map((team, k) => <span key={team} class="key"><i style={{ background: colourOf(k) }} />{team}</span>)}
        </div>
        {run.leases.job.length ? (
          <Gantt
            rows={rows} end={run.end} beginsAt={run.begins_at} label="Jobs on workers over time" height={640}
            colour={(k) => colours[k]} text={name}
            tip={(k, row) => [
              `${name(k)} on ${row.label}`,
              `lease ${run.leases.number[k]}, ${run.leases.workers[k].length} workers`,
              `${moment(run.leases.start[k], run.begins_at)} for ${span((run.leases.end[k] ?? run.end) - run.leases.start[k])}`,
              run.leases.reason[k] ?? "",
            ]}
            pick={(k) => { if (run.leases.job[k] >= 0) location.hash = `#/jobs/${encodeURIComponent(run.jobs.id[run.leases.job[k]])}`; }}
          />
        ) : <Empty>No worker was ever held, or the run was saved without leases.</Empty>}
      </Card>
      {state.workers && (
        <Card title="Workers now">
          <Table
            label="Workers now" rows={state.workers} keyOf={(worker) => `${worker.accelerator}/${worker.number}`}
            columns={[
              { name: "worker", cell: (worker) => `${worker.accelerator}/${worker.number}` },
              { name: "state", sort: (worker) => worker.state, cell: (worker) => worker.state },
              { name: "jobs", cell: (worker) => worker.jobs.map((job) => <a key={job} href={`#/jobs/${encodeURIComponent(job)}`}>{job} </a>) },
              { name: "node", sort: (worker) => worker.agent, cell: (worker) => worker.agent },
              { name: "device", cell: (worker) => worker.device },
              { name: "utilisation", number: true, cell: (worker) => percent(worker.utilization) },
              { name: "memory", number: true, cell: (worker) => (worker.memory_bytes ? `${digits((worker.memory_used_bytes ?? 0) / 1e9)} of ${digits(worker.memory_bytes / 1e9)} GB` : "–") },
              { name: "trouble", cell: (worker) => worker.trouble ?? "" },
            ]}
          />
        </Card>
      )}
    </>
  );
}

const LOAD = 1e9;

export function ServingWorkers({ run }: { run: ServingRun }) {
  const rows = useMemo(() => {
    const lanes: GanttRow[][] = run.workers.name.map(() => []);
    const models: GanttRow[] = run.workers.name.map(() => ({ label: "models", start: [], end: [], id: [] }));
    const order = run.stages.start.map((_, k) => k).filter((k) => run.stages.member[k] === 0).sort((a, b) => run.stages.start[a] - run.stages.start[b]);
    for (const k of order) {
      const mine = lanes[run.stages.worker[k]];
      let lane = mine.find((row) => row.end[row.end.length - 1] <= run.stages.start[k] + 1e-9);
      if (!lane) mine.push((lane = { label: `run ${mine.length + 1}`, start: [], end: [], id: [] }));
      lane.start.push(run.stages.start[k]);
      lane.end.push(run.stages.end[k]);
      lane.id.push(k);
    }
    const loads = run.loads.start.map((_, k) => k).sort((a, b) => run.loads.start[a] - run.loads.start[b]);
    for (const k of loads) {
      const row = models[run.loads.worker[k]];
      const last = row.end[row.end.length - 1] ?? -1;
      row.start.push(Math.max(run.loads.start[k], last));
      row.end.push(Math.max(run.loads.end[k], last, run.loads.start[k] + run.end / 5000));
      row.id.push(LOAD + k);
    }
    return run.workers.name.flatMap((name, k) => {
      const all = [...lanes[k], ...(models[k].id.length ? [models[k]] : [])];
      if (!all.length) return [{ label: "never used", group: name, start: [], end: [], id: [] }];
      return all.map((row, number) => (number ? row : { ...row, group: `${name} (${run.workers.type[k]})` }));
    });
  }, [run]);
  const flow = (k: number) => run.workflows[run.requests.workflow[run.stages.request[k]]];
  return (
    <>
      <Card title="Workers over time" note={<>Runs of stages, coloured by workflow; a worker has a row for each that it ran side by side. A run leads to its request.{run.loads.start.length > 0 && <> Below them, models: <span class="key"><i style={{ background: "#b07a00" }} />loaded</span><span class="key"><i style={{ background: "#b32d2d" }} />evicted</span></>}</>}>
        <div class="filters">{run.workflows.map((workflow, k) => <span key={workflow.name} class="key"><i style={{ background: colourOf(k) }} />{workflow.name}</span>)}</div>
        {run.stages.start.length || run.loads.start.length ? (
          <Gantt
            rows={rows} end={run.end} beginsAt={run.begins_at} label="Stages on workers over time" height={640}
            colour={(k) => (k >= LOAD ? (run.loads.evicted[k - LOAD] ? "#b32d2d" : "#b07a00") : colourOf(run.requests.workflow[run.stages.request[k]]))}
            text={(k) => (k >= LOAD ? run.models[run.loads.model[k - LOAD]] : flow(k).stages[run.stages.stage[k]])}
            tip={(k) => (k >= LOAD
              ? [`${run.loads.evicted[k - LOAD] ? "evicted" : run.loads.ahead[k - LOAD] ? "loaded ahead" : "loaded"}: ${run.models[run.loads.model[k - LOAD]]}`, `at ${span(run.loads.start[k - LOAD])} for ${span(run.loads.end[k - LOAD] - run.loads.start[k - LOAD])}`]
              : [`${flow(k).name}: ${flow(k).stages[run.stages.stage[k]]}`, `request ${run.stages.request[k]}, ${run.stages.batch[k]} together, ${run.stages.cpu[k]} CPU, ${run.stages.gpu[k]} slices`, `at ${span(run.stages.start[k])} for ${span(run.stages.end[k] - run.stages.start[k])}; model: ${run.stages.found[k]}`])}
            pick={(k) => { if (k < LOAD) location.hash = `#/requests/${run.stages.request[k]}`; }}
          />
        ) : <Empty>The run was saved without its stages.</Empty>}
      </Card>
      <Card title="Workers in all">
        <Table
          label="Workers" rows={run.workers.name.map((_, k) => k)} keyOf={(k) => k}
          columns={[
            { name: "worker", sort: (k) => k, cell: (k) => run.workers.name[k] },
            { name: "type", sort: (k) => run.workers.type[k], cell: (k) => run.workers.type[k] },
            { name: "busy", number: true, sort: (k) => run.workers.busy_seconds[k], cell: (k) => percent(run.workers.busy_seconds[k] / run.end) },
            { name: "tasks", number: true, sort: (k) => run.workers.tasks[k], cell: (k) => digits(run.workers.tasks[k]) },
            ...(run.workers.name.some((_, k) => hits(run, k) !== null || run.workers.loads[k]) ? [
              { name: "model in memory", number: true, sort: (k: number) => hits(run, k), cell: (k: number) => percent(hits(run, k)) },
              { name: "loads", number: true, sort: (k: number) => run.workers.loads[k], cell: (k: number) => digits(run.workers.loads[k]) },
              { name: "evictions", number: true, sort: (k: number) => run.workers.evictions[k], cell: (k: number) => digits(run.workers.evictions[k]) },
            ] : []),
          ]}
        />
      </Card>
    </>
  );
}

const hits = (run: ServingRun, k: number): number | null => {
  const all = run.workers.hits[k] + run.workers.partial[k] + run.workers.misses[k];
  return all ? run.workers.hits[k] / all : null;
};
