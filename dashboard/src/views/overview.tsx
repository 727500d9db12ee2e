// Overview: the numbers of the moment, the cluster by node and type, use and queue over time.

import { useMemo } from "preact/hooks";
import { Chart } from "../chart";
import { GREY, colourOf } from "../colours";
import { digits, dollars, percent, plural, span } from "../format";
import { binsOf, busyByType, costOf, deadlinesMet, dollarsPerHour, mean, requestsOverTime, waitingAndRunning, workersByType } from "../measures";
import { Card, Tile } from "../parts";
import type { ServingRun, TrainingRun } from "../run";
import type { State } from "../state";

export function Overview({ state }: { state: State }) {
  const run = state.run!;
  return (
    <>
      {run.kind === "training" && <Training run={run} state={state} />}
      {run.kind === "serving" && <Serving run={run} />}
      {state.saved && state.server === null && <Origin state={state} />}
    </>
  );
}

function Training({ run, state }: { run: TrainingRun; state: State }) {
  const live = state.server === "up";
  const facts = useMemo(() => {
    const bins = binsOf(run.end);
    const [waiting, running] = waitingAndRunning(run, bins);
    return { bins, waiting, running, busy: busyByType(run, bins), counts: workersByType(run) };
  }, [run]);
  const counts = useMemo(() => countStates(run.jobs.state), [run]);
  const total = facts.counts.reduce((sum, count) => sum + count, 0);
  const open = run.leases.end.reduce((sum: number, end, k) => sum + (end === null ? run.leases.workers[k].length : 0), 0);
  const used = mean(facts.bins.time.map((_, k) => facts.busy.reduce((sum, one) => sum + one[k], 0)));
  const jct = run.jobs.ended.flatMap((end, k) => (end !== null && run.jobs.state[k] === "succeeded" ? [end - run.jobs.submitted[k]] : []));
  const met = deadlinesMet(run);
  const rate = dollarsPerHour(run);
  return (
    <>
      <div class="tiles">
        {live ? (
          <Tile name="Workers busy" value={`${open} of ${total}`} note={percent(total ? open / total : null)} href="#/workers" />
        ) : (
          <Tile name="Utilisation" value={percent(total && used !== null ? used / total : null)} note={`${plural(total, "worker")}, ${span(run.end)}`} href="#/workers" />
        )}
        <Tile name="Waiting" value={digits(counts.queued ?? 0)} note={plural(run.jobs.id.length, "job") + " in all"} href="#/jobs" />
        <Tile name="Running" value={digits((counts.running ?? 0) + (counts.preempting ?? 0))} note={`${digits(counts.succeeded ?? 0)} succeeded, ${digits(counts.failed ?? 0)} failed`} href="#/jobs" />
        <Tile name="Mean completion time" value={span(mean(jct))} note={`of ${plural(jct.length, "job")}`} href="#/jobs" />
        <Tile name="In time for deadlines" value={met === null ? "–" : percent(met)} note={met === null ? "no job has one" : "of jobs with a deadline"} href="#/jobs" />
        <Tile name="Cost" value={rate === null ? "–" : `${dollars(rate)}/h`} note={rate === null ? "types have no prices" : `${dollars(costOf(run))} used so far`} href="#/teams" />
      </div>
      <Card title="Cluster" note={state.status ? `Policy ${state.status.policy}, rounds of ${span(state.status.round_seconds)}${state.status.emulated ? "; emulated accelerators" : ""}.${(state.status.caveats ?? []).map((said) => ` Note: ${said}.`).join("")}` : run.policy ? `Policy ${run.policy}.` : undefined}>
        <Map run={run} state={state} />
      </Card>
      <div class="columns">
        <Card title="Workers in use, by type">
          <Chart
            label="Workers in use over time, by type" time={facts.bins.time} beginsAt={run.begins_at}
            lines={run.types.map((type, k) => ({ name: `${type} (${facts.counts[k]})`, values: facts.busy[k], colour: colourOf(k), fill: true }))}
          />
        </Card>
        <Card title="Jobs that wait and run">
          <Chart
            label="Jobs that wait and that run, over time" time={facts.bins.time} beginsAt={run.begins_at}
            lines={[{ name: "waiting", values: facts.waiting, colour: colourOf(1) }, { name: "running", values: facts.running, colour: colourOf(0) }]}
          />
        </Card>
      </div>
    </>
  );
}

const countStates = (states: string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const one of states) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
};

/** A square for each worker, by node and type: what runs there now, or how much of the time it was busy in a saved run. */
function Map({ run, state }: { run: TrainingRun; state: State }) {
  const holder = new globalThis.Map<string, number>();
  const past = state.server === null;
  const busy = useMemo(() => {
    const seconds = new globalThis.Map<string, number>();
    if (past)
      run.leases.start.forEach((start, k) => run.leases.workers[k].forEach((number) => {
        const name = `${run.types[run.leases.type[k]]}/${number}`;
        seconds.set(name, (seconds.get(name) ?? 0) + (run.leases.end[k] ?? run.end) - start);
      }));
    return seconds;
  }, [run, past]);
  run.leases.end.forEach((end, k) => {
    if (end === null) run.leases.workers[k].forEach((number) => holder.set(`${run.types[run.leases.type[k]]}/${number}`, k));
  });
  const { drained, lost } = run.workers;
  const states = new globalThis.Map(run.workers.number.map((number, row) => [`${run.types[run.workers.type[row]]}/${number}`, lost[row] !== null ? "lost" : drained[row] !== null ? "drained" : "there"]));
  const groups = new globalThis.Map<string, string[]>();
  run.workers.number.forEach((number, row) => {
    const type = run.types[run.workers.type[row]];
    const heading = run.workers.node[row] && new Set(run.workers.node).size > 1 ? `${run.workers.node[row]}: ${type}` : type;
    const found = groups.get(heading) ?? [];
    found.push(`${type}/${number}`);
    groups.set(heading, found);
  });
  return (
    <div class="map">
      {[...groups].map(([heading, names]) => (
        <div class="map-group" key={heading}>
          <div class="faint">{`${heading} × ${names.length}`}</div>
          <div class="squares">
            {names.map((name) => {
              const lease = holder.get(name);
              const known = states.get(name);
              if (past) {
                const part = run.end > 0 ? Math.min((busy.get(name) ?? 0) / run.end, 1) : 0;
                const ink = colourOf(run.types.indexOf(name.split("/")[0]));
                return <span key={name} class="square" style={{ background: `color-mix(in srgb, ${ink} ${Math.round(part * 100)}%, var(--idle))` }} title={`${name}: busy ${percent(part)} of the time`} />;
              }
              const job = lease === undefined ? -1 : run.leases.job[lease];
              const out = known === "drained" || known === "lost";
              const colour = out ? "transparent" : lease === undefined ? "var(--idle)" : job < 0 ? GREY : colourOf(run.types.indexOf(name.split("/")[0]));
              const told = `${name}: ${out ? known : lease === undefined ? "free" : job < 0 ? "a job of another team" : run.jobs.id[job]}`;
              return job >= 0
                ? <a key={name} class="square" href={`#/jobs/${encodeURIComponent(run.jobs.id[job])}`} style={{ background: colour }} title={told} aria-label={told} />
                : <span key={name} class={`square ${out ? "out" : ""}`} style={{ background: colour }} title={told} />;
            })}
          </div>
        </div>
      ))}
      <p class="faint">{past ? "The fuller the colour, the more of the time a worker was busy." : "Filled: busy; pale: free; crossed: drained or lost. A filled square leads to its job."}</p>
    </div>
  );
}

function Serving({ run }: { run: ServingRun }) {
  const facts = useMemo(() => {
    const bins = binsOf(run.end, 80);
    return { bins, over: requestsOverTime(run, bins) };
  }, [run]);
  const summary = run.summary;
  return (
    <>
      <div class="tiles">
        <Tile name="Requests" value={digits(run.requests.arrival.length)} note={`${digits(summary.completed)} answered, ${digits(summary.refused ?? 0)} refused`} href="#/requests" />
        <Tile name="In time (SLO)" value={percent(summary.slo_hit_rate)} note="of the requests that count" href="#/workflows" />
        <Tile name="Mean latency" value={span(summary.latency_seconds?.mean)} note={`p99 ${span(summary.latency_seconds?.p99)}`} href="#/requests" />
        <Tile name="Model in memory" value={percent(summary.cache_hit_rate)} note="of the tasks that need one" href="#/workers" />
        <Tile name="Utilisation" value={percent(summary.utilization)} note={plural(run.workers.name.length, "worker")} href="#/workers" />
        <Tile name="Cost" value={dollars(summary.cost_dollars)} note={summary.cost_dollars === null ? "use has no price here" : "of the requests that count"} />
      </div>
      <div class="columns">
        <Card title="Requests that come, per second">
          <Chart label="Requests per second over time" beginsAt={run.begins_at} time={facts.bins.time} lines={[{ name: "requests/s", values: facts.over[0], colour: colourOf(0), fill: true }]} />
        </Card>
        <Card title="In time, and mean latency" note="By when a request came.">
          <Chart label="Part of the requests in time, by arrival" height={150} most={1} digitsOf={(value) => percent(value)} beginsAt={run.begins_at} time={facts.bins.time} lines={[{ name: "in time", values: facts.over[2], colour: colourOf(2) }]} />
          <Chart label="Mean latency over time, by arrival" height={150} digitsOf={(value) => span(value)} beginsAt={run.begins_at} time={facts.bins.time} lines={[{ name: "mean latency", values: facts.over[1], colour: colourOf(1) }]} />
        </Card>
      </div>
    </>
  );
}

export function Origin({ state }: { state: State }) {
  const saved = state.saved!;
  return (
    <Card title="How this came about">
      {saved.origin.meaning && <p>{saved.origin.meaning}</p>}
      {saved.command && <pre class="code" tabIndex={0}>{saved.command}</pre>}
      <details>
        <summary>Settings</summary>
        <pre class="code" tabIndex={0}>{JSON.stringify(state.run!.settings, null, 2)}</pre>
      </details>
      <p class="faint">{`Saved by Fairway ${saved.fairway}.`}</p>
    </Card>
  );
}

