// Runs of requests side by side: in time against cost, latencies by workflow, how models were found, sizes, queues, stale views.

import { useMemo } from "preact/hooks";
import { Chart } from "../chart";
import { digits, dollars, percent, span, unitOf } from "../format";
import type { Look } from "../looks";
import { Level, binsOf, meansOver } from "../measures";
import { Card } from "../parts";
import { Bars, Plot, distribution } from "../plot";
import type { ServingRun } from "../run";

type ServingLook = Look & { run: ServingRun };

const MOST_PANELS = 6;
const FOUND: [string, string][] = [["in memory", "#1e7d5c"], ["on their way", "#b07a00"], ["waited for in the queue", "#8a4bb0"], ["to be fetched", "#b32d2d"]];

export function ServingCharts({ looks }: { looks: ServingLook[] }) {
  const line = (k: number) => ({ name: looks[k].name, colour: looks[k].colour, dash: looks[k].dash });
  const priced = looks.filter(({ run }) => run.summary.cost_per_1000_requests && run.summary.slo_hit_rate !== null);
  const slow = useMemo(() => looks.map(({ run }) => taken(run, -1).map(([k, took]) => took / run.workflows[run.requests.workflow[k]].lower_bound_seconds).filter(Number.isFinite)), [looks]);
  return (
    <>
      <Latencies looks={looks} />
      <div class="columns">
        {priced.length > 0 && (
          <Card title="In time, and for how much" note="Further up and left is better. Late requests cost as much as others; a scheduler that leaves requests unanswered looks cheaper than it is.">
            <Plot label="Requests in time against cost" xName="dollars per 1000 requests" yName="in time" yEnds={[0, 1.06]} xShow={dollars} yShow={percent}
              curves={priced.map((look) => ({ name: look.name, colour: look.colour, x: [look.run.summary.cost_per_1000_requests as number], y: [look.run.summary.slo_hit_rate as number], dots: true, apart: true, told: [`${look.name}: ${percent(look.run.summary.slo_hit_rate)} in time for ${dollars(look.run.summary.cost_per_1000_requests)}`] }))} />
          </Card>
        )}
        <Card title="How much longer than necessary" note="All requests: latency over the least that their workflow takes, with no waiting, no transfers and nothing to load. 1 is as good as it gets.">
          <Plot label="Part of the requests whose slow-down is at most a value" log xName="slow-down (logarithmic)" yName="requests" yEnds={[0, 1]} xShow={digits} yShow={percent}
            curves={slow.map((values, k) => ({ ...line(k), ...distribution(values, countedOf(looks[k].run, -1)) }))} />
        </Card>
        <Models looks={looks} />
        <OverTime looks={looks} />
      </div>
    </>
  );
}

const countedOf = (run: ServingRun, flow: number): number =>
  run.requests.counted.reduce((sum, one, k) => sum + (one && (flow < 0 || run.requests.workflow[k] === flow) ? 1 : 0), 0);

/** Requests that count and were answered, with their latencies. */
function taken(run: ServingRun, flow: number): [number, number][] {
  const { arrival, finish, counted, workflow } = run.requests;
  return arrival.flatMap((at, k): [number, number][] => (counted[k] && finish[k] !== null && (flow < 0 || workflow[k] === flow) ? [[k, finish[k]! - at]] : []));
}

function Latencies({ looks }: { looks: ServingLook[] }) {
  const flows = looks[0].run.workflows;
  const panels = useMemo(() => {
    const asked = flows.map((_, flow) => looks[0].run.requests.workflow.filter((one) => one === flow).length);
    const most = flows.map((_, flow) => flow).sort((a, b) => asked[b] - asked[a]).slice(0, MOST_PANELS).sort((a, b) => a - b);
    return most.map((flow) => {
      const times = looks.map(({ run }) => taken(run, flow).map(([, took]) => took));
      const [word, unit] = unitOf(times.reduce((all, one) => one.reduce((top, took) => Math.max(top, took), all), 0) / 10);
      return { flow, times, word, unit };
    });
  }, [looks]);
  const left = flows.length - panels.length;
  return (
    <Card title="How long requests took" note={`Further left and higher is better: the part of the requests that were answered within a time. Where a curve crosses the dotted line is the part that was in time.${left > 0 ? ` The ${panels.length} workflows that most requests ask for; ${left} more are under Workflows.` : ""}`}>
      <div class={`panels ${panels.length === 2 || panels.length === 4 ? "two" : ""}`}>
        {panels.map(({ flow, times, word, unit }) => {
          const slo = flows[flow].slo_seconds;
          return (
            <div key={flow}>
              <h3>{flows[flow].name}</h3>
              <Plot
                label={`Part of the requests for ${flows[flow].name} answered within a time`} log height={250} xName={`latency (${word}, logarithmic)`} yName="answered" yEnds={[0, 1]}
                xShow={digits} yShow={percent} upright={slo === null || slo <= 0 ? undefined : { at: slo / unit, name: "SLO" }}
                curves={times.map((values, k) => ({ name: looks[k].name, colour: looks[k].colour, dash: looks[k].dash, ...distribution(values.map((took) => took / unit), countedOf(looks[k].run, flow)) }))}
              />
            </div>
          );
        })}
      </div>
    </Card>
  );
}

function Models({ looks }: { looks: ServingLook[] }) {
  const sum = (values: number[] | undefined) => (values ?? []).reduce((total, value) => total + value, 0);
  const bars = looks.map(({ run, name }) => {
    const { workers } = run;
    const awaited = Math.min(sum(workers.awaited), sum(workers.hits));
    const counts = [sum(workers.hits) - awaited, sum(workers.partial), awaited, sum(workers.misses)];
    const all = sum(counts);
    return { name, all, parts: FOUND.map(([part, colour], k) => ({ name: part, colour, value: all ? counts[k] / all : 0 })).filter((part) => part.value > 0) };
  }).filter(({ all }) => all > 0);
  if (!bars.length) return null;
  return (
    <Card title="How tasks found their models" note="In memory; on their way, since they were asked for before; there because a job waited for them in its queue; or still to be fetched. The number is the part in memory.">
      <Bars label="How tasks found their models" bars={bars} show={percent} total={(bar) => percent(bar.parts.find((part) => part.name === "in memory")?.value ?? 0)} />
    </Card>
  );
}

function OverTime({ looks }: { looks: ServingLook[] }) {
  const end = Math.max(...looks.map(({ run }) => run.end));
  const facts = useMemo(() => {
    const bins = binsOf(end, 120);
    const of = looks.map(({ run }) => {
      const { stages, loads, staleness } = run;
      const waiting = new Level(bins);
      stages.queued.forEach((at, k) => waiting.add(at, stages.turn[k], 1));
      const heads = stages.member.flatMap((member, k) => (member === 0 ? [k] : []));
      const mean = (values: number[]) => meansOver(heads.map((k) => stages.start[k]), heads.map((k) => values[k]), bins);
      const begun = (ahead: boolean) => {
        const counts = bins.time.map(() => 0);
        loads.start.forEach((at, k) => { if (!loads.evicted[k] && loads.ahead[k] === ahead) counts[Math.min(Math.floor(at / bins.width), counts.length - 1)] += 1; });
        let total = 0;
        return counts.map((count) => (total += count));
      };
      return {
        waiting: waiting.means(), batch: mean(stages.batch), slices: mean(stages.gpu), cpus: mean(stages.cpu), cold: begun(false), ahead: begun(true),
        load: staleness ? meansOver(staleness.time, staleness.load_seconds, bins) : [], wrong: staleness ? meansOver(staleness.time, staleness.models_wrong, bins) : [],
      };
    });
    return { bins, of };
  }, [looks]);
  const chart = (title: string, note: string, label: string, of: (fact: (typeof facts.of)[number]) => (number | null)[], show?: (value: number) => string) => {
    const all = facts.of.map((fact, k) => of(fact).map((value, bin) => (facts.bins.time[bin] - facts.bins.width / 2 <= looks[k].run.end ? value : null)));
    if (!all.some((values) => values.some((value) => value !== null && value !== 0))) return null;
    return (
      <Card title={title} note={note}>
        <Chart label={label} height={190} time={facts.bins.time} digitsOf={show} lines={looks.map((look, k) => ({ name: look.name, colour: look.colour, dash: look.dashes, values: all[k] })).filter((one) => one.values.length)} />
      </Card>
    );
  };
  const differ = (of: (run: ServingRun) => number[]) => looks.some(({ run }) => of(run).some((value) => value !== of(run)[0]));
  return (
    <>
      {chart("Tasks that wait", "A queue that keeps growing says that requests come too fast.", "Tasks that wait over time, by run", (fact) => fact.waiting)}
      {chart("Cold starts", "Copies of models that had been begun by a time because a job waited for them.", "Copies that jobs waited for, until a time", (fact) => fact.cold)}
      {chart("Models loaded ahead", "Copies that had been begun by a time before any job waited for them.", "Copies loaded ahead, until a time", (fact) => fact.ahead)}
      {differ((run) => run.stages.batch) && chart("Batches", "The mean jobs of the tasks that started at a time.", "Mean batch over time", (fact) => fact.batch)}
      {differ((run) => run.stages.gpu) && chart("GPU slices", "The mean slices of the tasks that started at a time.", "Mean slices over time", (fact) => fact.slices)}
      {differ((run) => run.stages.cpu) && chart("CPUs", "The mean CPUs of the tasks that started at a time.", "Mean CPUs over time", (fact) => fact.cpus)}
      {chart("How wrong planners were about loads", "The mean distance, in seconds, of what a planner believed of another worker's load from the truth.", "Mean error of loads over time", (fact) => fact.load, span)}
      {chart("How wrong planners were about models", "The part of all models and workers that a planner had wrong.", "Models that planners had wrong over time", (fact) => fact.wrong, percent)}
    </>
  );
}
