// What is computed of a run: means over bins of time, shares of teams, latencies. Nothing here draws.

import type { ServingRun, TrainingRun } from "./run";

export interface Bins {
  time: number[];
  width: number;
}

export function binsOf(end: number, most = 400): Bins {
  const count = end > 0 ? most : 1;
  const width = (end || 1) / count;
  return { time: Array.from({ length: count }, (_, k) => (k + 0.5) * width), width };
}

/** Means over bins of how much is there, added up from spans: in time proportional to spans and bins together. */
export class Level {
  private slope: Float64Array;
  private part: Float64Array;
  constructor(private bins: Bins) {
    this.slope = new Float64Array(bins.time.length + 1);
    this.part = new Float64Array(bins.time.length);
  }
  add(start: number, end: number, amount: number): void {
    const { width } = this.bins;
    const last = this.part.length - 1;
    if (!(end > start)) return;
    const first = Math.min(Math.max(Math.floor(start / width), 0), last);
    const final = Math.min(Math.max(Math.floor(end / width), 0), last);
    if (first === final) {
      this.part[first] += (amount * (end - start)) / width;
      return;
    }
    this.part[first] += (amount * ((first + 1) * width - start)) / width;
    this.part[final] += (amount * Math.min(end - final * width, width)) / width;
    this.slope[first + 1] += amount;
    this.slope[final] -= amount;
  }
  means(): number[] {
    let level = 0;
    return Array.from(this.part, (part, k) => Math.max((level += this.slope[k]) + part, 0));
  }
}

const until = (end: number | null, now: number): number => (end === null ? now : end);

export function workersByType(run: TrainingRun): number[] {
  const counts = run.types.map(() => 0);
  run.workers.type.forEach((kind, row) => {
    if (run.workers.lost[row] === null) counts[kind] += 1;
  });
  return counts;
}

export function busyByType(run: TrainingRun, bins: Bins): number[][] {
  const levels = run.types.map(() => new Level(bins));
  const { start, end, type, workers } = run.leases;
  for (let k = 0; k < start.length; k++) levels[type[k]].add(start[k], until(end[k], run.end), workers[k].length);
  return levels.map((level) => level.means());
}

export function waitingAndRunning(run: TrainingRun, bins: Bins): [number[], number[]] {
  const present = new Level(bins);
  const running = new Level(bins);
  const { submitted, ended, state } = run.jobs;
  for (let k = 0; k < submitted.length; k++)
    if (!(state[k] === "failed" && ended[k] === null)) present.add(submitted[k], until(ended[k], run.end), 1);
  const { start, end, partner } = run.leases;
  for (let k = 0; k < start.length; k++) running.add(start[k], until(end[k], run.end), partner[k] >= 0 ? 2 : 1);
  const going = running.means();
  return [present.means().map((all, k) => Math.max(all - going[k], 0)), going];
}

export interface TeamShare {
  name: string;
  weight: number;
  received: number[];
  fair: number[];
  seconds: number;
  dollars: number | null;
  jobs: number;
  done: number;
}

export const NO_TEAM = "no team";

/** What each team held over time, and what it was entitled to: the workers by weight among teams with jobs, where what a team's
 * jobs cannot use goes to the others. */
export function teamShares(run: TrainingRun, bins: Bins): TeamShare[] {
  const names = [...run.teams.name];
  if (run.jobs.team.some((team) => team === null) && run.jobs.team.length) names.push(NO_TEAM);
  const row = new Map(names.map((name, k) => [name, k]));
  const held = names.map(() => new Level(bins));
  const present = names.map(() => new Level(bins));
  const shares: TeamShare[] = names.map((name, k) => ({
    name, weight: run.teams.weight[k] ?? 1, received: [], fair: [], seconds: 0, dollars: 0, jobs: 0, done: 0,
  }));
  const teamOf = run.jobs.team.map((team) => row.get(team ?? NO_TEAM) ?? 0);
  run.jobs.submitted.forEach((at, k) => {
    const share = shares[teamOf[k]];
    share.jobs += 1;
    share.done += run.jobs.state[k] === "succeeded" ? 1 : 0;
    if (!(run.jobs.state[k] === "failed" && run.jobs.ended[k] === null))
      present[teamOf[k]].add(at, until(run.jobs.ended[k], run.end), run.jobs.count[k]);
  });
  const { start, end, job, partner, type, workers } = run.leases;
  for (let k = 0; k < start.length; k++) {
    const members = [job[k], partner[k]].filter((one) => one >= 0);
    const finish = until(end[k], run.end);
    for (const one of members) {
      const amount = workers[k].length / members.length;
      const share = shares[teamOf[one]];
      held[teamOf[one]].add(start[k], finish, amount);
      share.seconds += (finish - start[k]) * amount;
      const price = run.prices[run.types[type[k]]];
      share.dollars = price === undefined || share.dollars === null ? null : share.dollars + ((finish - start[k]) * amount * price) / 3600;
    }
  }
  const total = run.workers.type.length;
  const there = present.map((level) => level.means());
  shares.forEach((share, k) => {
    share.received = held[k].means();
  });
  bins.time.forEach((_, bin) => {
    const given = divided(total, there.map((levels) => levels[bin]), shares.map((share) => share.weight));
    given.forEach((amount, k) => shares[k].fair.push(amount));
  });
  return shares;
}

/** An amount divided by weight, where no team gets more than it wants. */
export function divided(amount: number, wants: number[], weights: number[]): number[] {
  const given = wants.map(() => 0);
  for (let round = 0; round < wants.length; round++) {
    const open = wants.map((want, k) => (given[k] < want - 1e-9 ? weights[k] : 0));
    const all = open.reduce((sum, weight) => sum + weight, 0);
    const left = amount - given.reduce((sum, one) => sum + one, 0);
    if (all <= 0 || left <= 1e-9) break;
    wants.forEach((want, k) => { given[k] = Math.min(want, given[k] + (left * open[k]) / all); });
  }
  return given;
}

/** What a team held of what it was entitled to, over the whole run. */
export function teamsPart(share: TeamShare): number | null {
  const due = mean(share.fair);
  return due ? mean(share.received)! / due : null;
}

/** By job that held workers: its time on them over what an equal share by weight would have been while it was there. */
export function fairParts(run: TrainingRun): number[] {
  const { jobs, leases } = run;
  const total = run.workers.type.length;
  const held = jobs.id.map(() => 0);
  leases.start.forEach((start, k) => {
    const members = [leases.job[k], leases.partner[k]].filter((one) => one >= 0);
    for (const one of members) held[one] += ((until(leases.end[k], run.end) - start) * leases.workers[k].length) / members.length;
  });
  const leave = jobs.ended.map((end) => until(end, run.end));
  const there = jobs.id.map((_, k) => k).filter((k) => !(jobs.state[k] === "failed" && jobs.ended[k] === null) && leave[k] > jobs.submitted[k]);
  // The integral of workers over the weight of all jobs, up to each moment at which that weight changes.
  const changes = there.flatMap((k): [number, number][] => [[jobs.submitted[k], jobs.weight[k]], [leave[k], -jobs.weight[k]]]).sort((a, b) => a[0] - b[0]);
  const at: number[] = [];
  const sums: number[] = [];
  let [weight, sum, before] = [0, 0, 0];
  for (const [moment, by] of changes) {
    if (weight > 1e-12) sum += ((moment - before) * total) / weight;
    weight += by;
    before = moment;
    at.push(moment);
    sums.push(sum);
  }
  const upTo = (moment: number): number => {
    let [low, high] = [0, at.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low ? sums[low - 1] : 0;
  };
  return there.flatMap((k) => {
    const due = Math.min((upTo(leave[k]) - upTo(jobs.submitted[k])) * jobs.weight[k], (leave[k] - jobs.submitted[k]) * jobs.count[k]);
    return due > 0 ? [held[k] / due] : [];
  });
}

/** The mean of values in each bin of their moments, null in a bin without any. */
export function meansOver(moments: number[], values: number[], bins: Bins): (number | null)[] {
  const sum = bins.time.map(() => 0);
  const count = bins.time.map(() => 0);
  moments.forEach((at, k) => {
    const bin = Math.min(Math.max(Math.floor(at / bins.width), 0), sum.length - 1);
    sum[bin] += values[k];
    count[bin] += 1;
  });
  return sum.map((one, k) => (count[k] ? one / count[k] : null));
}

export function costOf(run: TrainingRun): number | null {
  let sum = 0;
  const { start, end, type, workers } = run.leases;
  for (let k = 0; k < start.length; k++) {
    const price = run.prices[run.types[type[k]]];
    if (price === undefined) return null;
    sum += ((until(end[k], run.end) - start[k]) * workers[k].length * price) / 3600;
  }
  return sum;
}

export function dollarsPerHour(run: TrainingRun): number | null {
  const counts = workersByType(run);
  if (run.types.some((type) => run.prices[type] === undefined)) return null;
  return run.types.reduce((sum, type, k) => sum + run.prices[type] * counts[k], 0);
}

/** The part of the jobs with a deadline that met it; null where none has one. */
export function deadlinesMet(run: TrainingRun): number | null {
  let asked = 0;
  let met = 0;
  run.jobs.deadline.forEach((deadline, k) => {
    const ended = run.jobs.ended[k];
    if (deadline === null || (ended === null && deadline > run.end)) return;
    asked += 1;
    met += ended !== null && ended <= deadline && run.jobs.state[k] === "succeeded" ? 1 : 0;
  });
  return asked ? met / asked : null;
}

export function quantile(sorted: number[], part: number): number | null {
  return sorted.length ? sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)] : null;
}

export const mean = (values: number[]): number | null =>
  values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;

export interface StageFacts {
  name: string;
  count: number;
  wait: number | null;
  run: number | null;
  p95: number | null;
  batch: number | null;
  hits: number | null;
}

export interface WorkflowMeasures {
  requests: number;
  done: number;
  mean: number | null;
  p95: number | null;
  p99: number | null;
  met: number | null;
  stages: StageFacts[];
}

export function workflowMeasures(run: ServingRun): WorkflowMeasures[] {
  const latencies: number[][] = run.workflows.map(() => []);
  const counts = run.workflows.map(() => [0, 0]);
  run.requests.workflow.forEach((flow, k) => {
    counts[flow][0] += 1;
    const finish = run.requests.finish[k];
    if (finish === null) return;
    latencies[flow].push(finish - run.requests.arrival[k]);
    const slo = run.workflows[flow].slo_seconds;
    if (slo !== null && finish - run.requests.arrival[k] <= slo) counts[flow][1] += 1;
  });
  const runs: number[][][] = run.workflows.map((flow) => flow.stages.map(() => []));
  run.stages.request.forEach((request, k) => runs[run.requests.workflow[request]][run.stages.stage[k]].push(k));
  return run.workflows.map((flow, number) => {
    const sorted = latencies[number].sort((a, b) => a - b);
    return {
      requests: counts[number][0],
      done: sorted.length,
      mean: mean(sorted),
      p95: quantile(sorted, 0.95),
      p99: quantile(sorted, 0.99),
      met: flow.slo_seconds === null || !counts[number][0] ? null : counts[number][1] / counts[number][0],
      stages: flow.stages.map((name, stage) => {
        const rows = runs[number][stage];
        const took = rows.map((k) => run.stages.end[k] - run.stages.start[k]).sort((a, b) => a - b);
        const withModel = rows.filter((k) => run.stages.found[k] !== "none");
        return {
          name,
          count: rows.length,
          wait: mean(rows.map((k) => run.stages.start[k] - run.stages.queued[k])),
          run: mean(took),
          p95: quantile(took, 0.95),
          batch: mean(rows.map((k) => run.stages.batch[k])),
          hits: withModel.length ? withModel.filter((k) => run.stages.found[k] === "hit").length / withModel.length : null,
        };
      }),
    };
  });
}

/** Per bin of arrival: requests that came, the mean latency, and the part that was in time. */
export function requestsOverTime(run: ServingRun, bins: Bins): [number[], (number | null)[], (number | null)[]] {
  const came = bins.time.map(() => 0);
  const sum = bins.time.map(() => 0);
  const done = bins.time.map(() => 0);
  const met = bins.time.map(() => 0);
  run.requests.arrival.forEach((at, k) => {
    const bin = Math.min(Math.floor(at / bins.width), came.length - 1);
    came[bin] += 1;
    const finish = run.requests.finish[k];
    const slo = run.workflows[run.requests.workflow[k]].slo_seconds;
    if (finish !== null) {
      done[bin] += 1;
      sum[bin] += finish - at;
      if (slo !== null && finish - at <= slo) met[bin] += 1;
    }
  });
  return [
    came.map((count) => count / bins.width),
    sum.map((total, k) => (done[k] ? total / done[k] : null)),
    met.map((count, k) => (came[k] ? count / came[k] : null)),
  ];
}
