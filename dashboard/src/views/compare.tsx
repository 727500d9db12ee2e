// Compare: the runs of a file side by side: numbers over seeds with the best of each, distributions, shares, costs, use over time.

import { useMemo } from "preact/hooks";
import { Chart } from "../chart";
import { digits, dollars, percent, span, unitOf } from "../format";
import { type Look, looksOf } from "../looks";
import { Card, Table } from "../parts";
import { Bars, Plot, distribution } from "../plot";
import { binsOf, busyByType, fairParts, teamShares, teamsPart, waitingAndRunning, workersByType } from "../measures";
import type { Run, SavedRun, ServingRun, TrainingRun } from "../run";
import { change } from "../state";
import { ServingCharts } from "./compare_serving";

export function Compare({ saved, chosen }: { saved: SavedRun; chosen: number }) {
  const looks = useMemo(() => looksOf(saved.runs), [saved]);
  const training = looks.filter((look): look is Look & { run: TrainingRun } => look.run.kind === "training");
  const serving = looks.filter((look): look is Look & { run: ServingRun } => look.run.kind === "serving");
  return (
    <>
      <Numbers looks={looks} chosen={chosen} />
      {training.length > 0 && <TrainingCharts looks={training} />}
      {serving.length > 0 && <ServingCharts looks={serving} />}
    </>
  );
}

interface Measure {
  name: string;
  meaning: string;
  of: (run: Run) => number | null | undefined;
  show: (value: number | null | undefined) => string;
  better?: "less" | "more";
}

const TRAINING: Measure[] = [
  { name: "mean JCT", meaning: "mean job completion time", of: (run) => run.summary.jct_seconds?.mean, show: span, better: "less" },
  { name: "p50 JCT", meaning: "median job completion time", of: (run) => run.summary.jct_seconds?.p50, show: span, better: "less" },
  { name: "p99 JCT", meaning: "99th percentile of completion times", of: (run) => run.summary.jct_seconds?.p99, show: span, better: "less" },
  { name: "makespan", meaning: "when the run ended", of: (run) => run.summary.makespan_seconds, show: span, better: "less" },
  { name: "busy", meaning: "part of all worker time in use", of: (run) => run.summary.utilization, show: percent, better: "more" },
  { name: "mean ρ", meaning: "mean of JCT over JCT on an equal share", of: (run) => run.summary.rho?.mean, show: digits, better: "less" },
  { name: "preempted", meaning: "how often a job was stopped or moved, on average", of: (run) => run.summary.preemptions_per_job, show: digits, better: "less" },
  { name: "late", meaning: "jobs that missed their deadlines", of: (run) => run.summary.slo_violations, show: digits, better: "less" },
  { name: "cost", meaning: "dollars for all jobs", of: (run) => run.summary.cost_dollars, show: dollars, better: "less" },
];

/** By policy, the mean over its runs of a number that is above 0. */
function meansOf(looks: Look[], of: (run: Run) => number | null | undefined): { name: string; parts: { name: string; value: number; colour: string }[] }[] {
  return [...new Set(looks.map((look) => look.policy))].flatMap((policy) => {
    const mine = looks.filter((look) => look.policy === policy);
    const known = mine.flatMap(({ run }) => of(run) || []);
    return known.length ? [{ name: policy, parts: [{ name: policy, value: known.reduce((sum, value) => sum + value, 0) / known.length, colour: mine[0].colour }] }] : [];
  });
}

const SERVING: Measure[] = [
  { name: "in time", meaning: "requests answered within their SLO", of: (run) => run.summary.slo_hit_rate, show: percent, better: "more" },
  { name: "mean latency", meaning: "from arrival to the end", of: (run) => run.summary.latency_seconds?.mean, show: span, better: "less" },
  { name: "p99 latency", meaning: "99th percentile", of: (run) => run.summary.latency_seconds?.p99, show: span, better: "less" },
  { name: "mean slow-down", meaning: "latency over the least that the workflow takes", of: (run) => run.summary.slowdown?.mean, show: digits, better: "less" },
  { name: "in memory", meaning: "tasks that found their models in memory", of: (run) => run.summary.cache_hit_rate, show: percent, better: "more" },
  { name: "cold starts", meaning: "copies of models that a job waited for", of: (run) => run.summary.cold_starts, show: digits, better: "less" },
  { name: "batch", meaning: "mean jobs of a task", of: (run) => run.summary.mean_batch, show: digits },
  { name: "busy", meaning: "part of all worker time, or slices, in use", of: (run) => run.summary.utilization, show: percent },
  { name: "energy", meaning: "of all workers", of: (run) => (run.summary.energy_joules ?? null) === null ? null : run.summary.energy_joules / 1000, show: (value) => (value === null || value === undefined ? "–" : `${digits(value)} kJ`), better: "less" },
  { name: "cost per 1000", meaning: "dollars for a thousand requests", of: (run) => run.summary.cost_per_1000_requests, show: dollars, better: "less" },
];

interface Cell {
  mean: number | null;
  half: number | null;
  best: boolean;
}

/** A row for each policy or scheduler, over its seeds; the best of each column is bold. */
function Numbers({ looks, chosen }: { looks: Look[]; chosen: number }) {
  const training = looks[0].run.kind === "training";
  const groups = [...new Set(looks.map((look) => look.policy))].map((policy) => looks.filter((look) => look.policy === policy));
  const measures = (training ? TRAINING : SERVING).filter((measure) => looks.some(({ run }) => (measure.of(run) ?? null) !== null));
  const columns = measures.map((measure) => cellsOf(measure, groups));
  const spans = measures.flatMap((measure, k) => (measure.show === span ? columns[k].map(({ mean }) => mean ?? 0) : []));
  const unit = unitOf(longest(spans) / 5); // one for the whole table, so that its numbers can be compared
  const several = groups.some((group) => group.length > 1);
  const pick = (look: Look) => change({ chosen: looks.indexOf(look), run: look.run });
  return (
    <Card title={looks.length > 1 ? "Runs compared" : "In numbers"} note={`${several ? "Means over the seeds of each, ± half of their range. " : ""}${looks.length > 1 ? `The best of each column is bold. A name makes its run the one that the other views show.` : ""}`}>
      <div class="tight">
        <Table
          label="Runs compared" rows={groups.map((_, k) => k)} keyOf={(k) => groups[k][0].policy} first={1000}
          columns={[
            {
              name: training ? "policy" : "scheduler", sort: (k) => groups[k][0].policy,
              cell: (k) => (
                <span class="curve" style={{ "--ink-of-line": groups[k][0].colour }}>
                  <svg width="20" height="10" aria-hidden="true"><path d="M0 5H20" /></svg>{" "}
                  {groups[k].map((look, seed) => (
                    <button key={seed} type="button" class={`plain link ${looks[chosen] === look ? "chosen" : ""}`} aria-pressed={looks[chosen] === look} onClick={() => pick(look)}>
                      {seed === 0 ? (groups[k].length > 1 ? look.name : look.policy) : `, ${look.name.replace(`${look.policy}, `, "")}`}
                    </button>
                  ))}
                </span>
              ),
            },
            ...measures.map((measure, column) => ({
              name: measure.show === span ? `${measure.name} (${unit[0]})` : measure.name, title: measure.meaning, number: true, sort: (k: number) => columns[column][k].mean,
              cell: (k: number) => {
                const { mean, half, best } = columns[column][k];
                const show = (value: number | null) => (measure.show === span ? digits(value === null ? null : value / unit[1]) : measure.show(value));
                return <>{best ? <strong>{show(mean)}</strong> : show(mean)}{half !== null && <div class="faint">{`± ${show(half)}`}</div>}</>;
              },
            })),
          ]}
        />
      </div>
      <Shortfalls looks={looks} />
    </Card>
  );
}

function cellsOf(measure: Measure, groups: Look[][]): Cell[] {
  const cells = groups.map((group) => {
    const known = group.map(({ run }) => measure.of(run) ?? null).filter((value): value is number => value !== null);
    const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    return { mean, half: known.length > 1 ? (Math.max(...known) - Math.min(...known)) / 2 : null, best: false };
  });
  const means = cells.flatMap(({ mean }) => (mean === null ? [] : [mean]));
  if (measure.better && means.length > 1) {
    const top = measure.show(measure.better === "less" ? Math.min(...means) : Math.max(...means));
    cells.forEach((cell) => { cell.best = cell.mean !== null && measure.show(cell.mean) === top; });
  }
  return cells;
}

/** What the averages leave out, a sentence for each run that has such. */
function Shortfalls({ looks }: { looks: Look[] }) {
  const said = looks.flatMap(({ run, name }) => {
    const { summary } = run;
    const parts = run.kind === "training"
      ? [[summary.unfinished, "not finished when the run ended"], [summary.unrunnable?.length, "that can never run"], [summary.failed, "failed or cancelled"]]
      : [[summary.refused, "refused"], [summary.requests - summary.completed - summary.refused, "not answered when the run ended"]];
    const told = parts.filter(([count]) => count > 0).map(([count, what]) => `${digits(count)} ${what}`);
    const [all, what] = run.kind === "training" ? [summary.jobs, "jobs completed"] : [summary.requests, "requests were answered"];
    const lines = told.length ? [`${name}: ${digits(summary.completed)} of ${digits(all)} ${what}; ${told.join(", ")}.`] : [];
    if (summary.retried) lines.push(`${name}: ${digits(summary.retried)} requests had to ask another worker.`);
    if (summary.skipped_rows || summary.unreadable_rows) lines.push(`${name}: ${digits((summary.skipped_rows ?? 0) + (summary.unreadable_rows ?? 0))} rows of the trace were left out.`);
    return lines;
  });
  return said.length ? <ul class="faint">{said.map((line) => <li key={line}>{line}</li>)}</ul> : null;
}

type TrainingLook = Look & { run: TrainingRun };

function TrainingCharts({ looks }: { looks: TrainingLook[] }) {
  const facts = useMemo(() => looks.map(({ run }) => {
    const counted = run.jobs.id.map((_, k) => k).filter((k) => run.jobs.counted?.[k] !== false);
    const done = counted.filter((k) => run.jobs.state[k] === "succeeded" && run.jobs.ended[k] !== null);
    const jct = done.map((k) => run.jobs.ended[k]! - run.jobs.submitted[k]);
    const rho = done.flatMap((k) => (run.jobs.isolated[k] ? [(run.jobs.ended[k]! - run.jobs.submitted[k]) / run.jobs.isolated[k]!] : []));
    return { counted: counted.length, jct, rho, share: run.teams.name.length ? [] : fairParts(run) };
  }), [looks]);
  const end = Math.max(...looks.map(({ run }) => run.end));
  const over = useMemo(() => {
    const bins = binsOf(end, 200);
    return { bins, of: looks.map(({ run }) => ({ queue: waitingAndRunning(run, bins), busy: busyByType(run, bins) })) };
  }, [looks]);
  const [word, unit] = unitOf(longest(facts.flatMap(({ jct }) => jct)) / 20);
  const line = (k: number) => ({ name: looks[k].name, colour: looks[k].colour, dash: looks[k].dash });
  const until = (k: number, values: number[]) => values.map((value, bin) => (over.bins.time[bin] <= looks[k].run.end ? value : null));
  const leases = looks.some(({ run }) => run.leases.job.length > 0);
  const types = looks[0].run.types;
  const counts = workersByType(looks[0].run);
  return (
    <>
      <Card title="How long jobs took" note="Further left and higher is better: the part of the jobs that finished within a time after their arrival.">
        {facts.some(({ jct }) => jct.length) ? (
          <Plot
            label="Part of the jobs that finished within a time" log height={340} xName={`completion time (${word}, logarithmic)`} yName="jobs finished" yEnds={[0, 1]}
            xShow={digits} yShow={percent} curves={facts.map(({ jct, counted }, k) => ({ ...line(k), ...distribution(jct.map((time) => time / unit), counted) }))}
          />
        ) : <p class="faint empty">No job completed.</p>}
      </Card>
      <div class="columns">
        {facts.some(({ rho }) => rho.length) && (
          <Card title="Served worse than by an equal share?" note="ρ: completion time over that on an equal share of the cluster. Right of 1, jobs were worse off; a fair policy keeps the top end of its curve to the left.">
            <Plot label="Part of the jobs whose rho is at most a value" log xName="ρ (logarithmic)" yName="jobs" yEnds={[0, 1]} xShow={digits} yShow={percent} upright={{ at: 1, name: "as on an equal share" }}
              curves={facts.map(({ rho }, k) => ({ ...line(k), ...distribution(rho, rho.length) }))} />
          </Card>
        )}
        {facts.some(({ share }) => share.length) && (
          <Card title="Who got its share" note="Time that a job held workers over what an equal share would have given it while it was there. At 1 it held exactly that.">
            <Plot label="Part of the jobs that received at most a part of their share" log xName="received, of the fair share (logarithmic)" yName="jobs" yEnds={[0, 1]} xShow={digits} yShow={percent} upright={{ at: 1, name: "the fair share" }}
              curves={facts.map(({ share }, k) => ({ ...line(k), ...distribution(share, share.length) }))} />
          </Card>
        )}
        {leases && looks.some(({ run }) => run.teams.name.length > 0) && <Teams looks={looks} />}
        <Groups looks={looks} title="How long jobs took, by team" of="teams" />
        <Groups looks={looks} title="How long jobs took, by weight" of="weights" />
        {looks.some(({ run }) => run.summary.cost_dollars) && (
          <Card title="What it cost" note="Time on each worker at its price.">
            <h3>all jobs</h3>
            <Bars label="Cost of all jobs" show={dollars} bars={meansOf(looks, (run) => run.summary.cost_dollars)} total={(bar) => dollars(bar.parts[0].value)} />
            <h3>each job that completed</h3>
            <Bars label="Cost of each job that completed" show={dollars} bars={meansOf(looks, (run) => run.summary.completed && run.summary.cost_dollars / run.summary.completed)} total={(bar) => dollars(bar.parts[0].value)} />
          </Card>
        )}
        {leases && (
          <Card title="Jobs that wait" note="A queue that keeps growing says that jobs arrive faster than the policy gets them done.">
            <Chart label="Jobs that wait over time, by run" time={over.bins.time} lines={looks.map((look, k) => ({ name: look.name, colour: look.colour, dash: look.dashes, values: until(k, over.of[k].queue[0]) }))} />
          </Card>
        )}
        {leases && types.map((type, column) => counts[column] > 0 && (
          <Card key={type} title={`How busy: ${type}`} note={`The part of its ${counts[column]} workers that jobs held.`}>
            <Chart
              label={`Part of the ${type} in use over time, by run`} height={150} most={1} digitsOf={percent} time={over.bins.time}
              lines={looks.map((look, k) => ({ name: look.name, colour: look.colour, dash: look.dashes, values: until(k, over.of[k].busy[look.run.types.indexOf(type)].map((value) => value / counts[column])) }))}
            />
          </Card>
        ))}
      </div>
    </>
  );
}

const longest = (values: number[]): number => values.reduce((most, value) => Math.max(most, value), 0);

function Groups({ looks, title, of }: { looks: TrainingLook[]; title: string; of: "teams" | "weights" }) {
  const names = [...new Set(looks.flatMap(({ run }) => Object.keys(run.summary[of] ?? {})))];
  if (!names.length) return null;
  return (
    <Card title={title} note="Mean completion time; shorter is better.">
      <div class={names.length > 3 ? "panels" : ""}>
        {names.slice(0, 20).map((name) => (
          <div key={name}>
            <h3>{of === "weights" ? `weight ${name}` : name}</h3>
            <Bars label={`Mean completion time of ${name}`} show={span} bars={meansOf(looks, (run) => run.summary[of]?.[name]?.jct_seconds?.mean)} total={(bar) => span(bar.parts[0].value)} />
          </div>
        ))}
      </div>
    </Card>
  );
}

/** What each team received of its fair share over the whole run, by run. */
function Teams({ looks }: { looks: TrainingLook[] }) {
  const received = useMemo(() => looks.map(({ run }) => new Map(teamShares(run, binsOf(run.end)).map((share) => [share.name, teamsPart(share)]))), [looks]);
  const names = [...new Set(received.flatMap((one) => [...one.keys()]))];
  return (
    <Card title="Who got its share" note="What each team held of the workers that its weight entitled it to, among the teams that had jobs; more than 100 % is what others left.">
      <Table
        label="Received of the fair share" rows={names} keyOf={(name) => name}
        columns={[
          { name: "team", cell: (name) => name },
          ...looks.map((look, k) => ({ name: look.name, number: true, cell: (name: string) => percent(received[k].get(name)) })),
        ]}
      />
    </Card>
  );
}

