// Keeps the run of a live controller up to date: the history once, events as they happen, and what of the history changed.
//
// A controller that goes away is asked again, less and less often; a token that ends shows the form to log in. What is on the
// screen stays there meanwhile.

import { Refused, events, get, hasKey, type Job, type Served, type Session, type Status } from "./api";
import type { SavedRun, TrainingRun } from "./run";
import { change, state } from "./state";

const BACK_SECONDS = 10;
let epoch = 0;
let stopping: () => void = () => undefined;
let asOf = 0;
const jobRow = new Map<string, number>();
const leaseRow = new Map<number, number>();

const pause = (ms: number) => new Promise((then) => setTimeout(then, ms));

export async function start(): Promise<void> {
  const mine = ++epoch;
  if (state.locked && !hasKey()) return change({ session: null });
  let patience = 500;
  while (mine === epoch) {
    try {
      change({ session: await get<Session>("session") });
      if (state.server === "serve") await follow_served(mine);
      else await follow(mine);
      patience = 500;
    } catch (error) {
      if (mine !== epoch) return;
      if (error instanceof Refused && error.status === 401) {
        const had = state.session !== null || hasKey();
        return change({ session: null, trouble: had ? "Your session has ended: the token was revoked or has expired. Log in again; what is shown stays." : null });
      }
      const detail = error instanceof Refused ? error.message : String((error as Error).message ?? error);
      change({ trouble: `No answer from the server (${detail}). What you see is as of ${new Date().toLocaleTimeString("en-GB")}; the page asks again by itself.` });
    }
    await pause(patience);
    patience = Math.min(patience * 1.6, 8000);
  }
}

export function stop(): void {
  epoch += 1;
  stopping();
}

async function follow(mine: number): Promise<void> {
  const quick = get<Status>("status").then((status) => change({ status, trouble: null })); // on the screen before the history is
  await get<SavedRun>("history").then(take);
  await quick;
  change({ trouble: null, loading: false });
  const control = new AbortController();
  stopping = () => control.abort();
  try {
    for await (const event of events(`events?pages=true&after=${Math.round((asOf - BACK_SECONDS) * 1e6)}`, control.signal)) {
      if (mine !== epoch) return;
      if (event.event === "job") takeJob(JSON.parse(event.data) as Job);
      else if (event.event === "history") merge(JSON.parse(event.data) as SavedRun);
      else if (event.event === "status") change({ status: JSON.parse(event.data) as Status, trouble: null });
      else if (event.event === "revoked") throw new Refused(401, "wrong-token", "the token has ended");
      else if (event.event === "closing") throw new Refused(0, "closing", "the controller has stopped");
    }
    throw new Refused(0, "closed", "the connection was closed");
  } finally {
    stopping = () => undefined;
    control.abort();
  }
}

function take(saved: SavedRun): void {
  const run = saved.runs[0] as TrainingRun;
  asOf = (run.begins_at ?? 0) + run.end;
  jobRow.clear();
  leaseRow.clear();
  run.jobs.id.forEach((id, row) => jobRow.set(id, row));
  run.leases.number.forEach((number, row) => leaseRow.set(number, row));
  change({ saved: { ...saved, origin: { kind: "live" } }, run, chosen: 0, name: "live" });
}

function merge(saved: SavedRun): void {
  const run = state.run as TrainingRun | null;
  const news = saved.runs[0] as TrainingRun;
  if (run === null || run.begins_at === null) return;
  const shift = (news.begins_at ?? 0) - run.begins_at;
  asOf = (news.begins_at ?? 0) + news.end;
  const types = news.types.map((type) => {
    const found = run.types.indexOf(type);
    return found >= 0 ? found : run.types.push(type) - 1;
  });
  if (news.workers) run.workers = { ...news.workers, type: news.workers.type.map((kind) => types[kind]), since: shifted(news.workers.since, shift),
    drained: shifted(news.workers.drained, shift), lost: shifted(news.workers.lost, shift) };
  const times = new Set(["submitted", "started", "ended", "deadline"]);
  const rows = news.jobs.id.map((id, k) => {
    let row = jobRow.get(id);
    if (row === undefined) jobRow.set(id, (row = run.jobs.id.length));
    for (const [column, values] of Object.entries(news.jobs)) {
      const value = (values as unknown[])[k];
      (run.jobs as Record<string, unknown[]>)[column][row] = times.has(column) && value !== null ? (value as number) + shift : value;
    }
    return row;
  });
  news.leases.number.forEach((number, k) => {
    let row = leaseRow.get(number);
    if (row === undefined) leaseRow.set(number, (row = run.leases.number.length));
    const { leases } = run;
    leases.number[row] = number;
    leases.job[row] = news.leases.job[k] < 0 ? -1 : rows[news.leases.job[k]];
    leases.partner[row] = news.leases.partner[k] < 0 ? -1 : rows[news.leases.partner[k]];
    leases.type[row] = types[news.leases.type[k]];
    leases.start[row] = news.leases.start[k] + shift;
    const end = news.leases.end[k];
    leases.end[row] = end === null ? null : end + shift;
    leases.steps[row] = leases.partner_steps[row] = null;
    leases.workers[row] = news.leases.workers[k];
    leases.reason[row] = news.leases.reason[k];
  });
  for (const name of news.teams.name)
    if (!run.teams.name.includes(name)) {
      run.teams.name.push(name);
      run.teams.weight.push(news.teams.weight[news.teams.name.indexOf(name)]);
    }
  run.end = asOf - run.begins_at;
  change({ run: { ...run } });
}

const shifted = (values: (number | null)[], by: number) => values.map((value) => (value === null ? null : value + by));

function takeJob(job: Job): void {
  const run = state.run as TrainingRun | null;
  if (run === null || run.begins_at === null || job.id === null) return;
  let row = jobRow.get(job.id);
  if (row === undefined) jobRow.set(job.id, (row = run.jobs.id.length));
  const at = (value: number | null | undefined) => (value === null || value === undefined ? null : value - run.begins_at!);
  const { jobs } = run;
  const before = jobs.state[row];
  jobs.id[row] = job.id;
  jobs.name[row] = job.name;
  jobs.type[row] ??= null;
  jobs.team[row] = job.team;
  jobs.user[row] = job.submitted_by.replace(/ \([^()]*\)$/, "");
  jobs.state[row] = job.state;
  jobs.submitted[row] = at(job.submitted_at)!;
  jobs.started[row] = at(job.started_at);
  jobs.ended[row] = at(job.ended_at);
  jobs.count[row] = job.count;
  jobs.asked[row] = job.accelerators;
  jobs.weight[row] = job.weight;
  jobs.deadline[row] ??= null;
  jobs.isolated[row] ??= null;
  jobs.attempts[row] = job.attempt_count;
  jobs.preemptions[row] ??= 0;
  jobs.steps[row] = job.steps;
  jobs.steps_left[row] = job.steps_left;
  jobs.reason_code[row] = job.reason_code;
  jobs.reason[row] = job.reason;
  if (job.team !== null && !run.teams.name.includes(job.team)) {
    run.teams.name.push(job.team);
    run.teams.weight.push(1);
  }
  const status = state.status;
  if (status !== null && before !== job.state) {
    status.jobs[job.state] = (status.jobs[job.state] ?? 0) + 1;
    if (before !== undefined) status.jobs[before] = Math.max((status.jobs[before] ?? 1) - 1, 0);
  }
  run.end = Math.max(run.end, Date.now() / 1000 - run.begins_at);
  change({ run: { ...run } });
}

async function follow_served(mine: number): Promise<void> {
  while (mine === epoch) {
    change({ served: await get<Served>("status"), trouble: null, loading: false });
    await pause(document.hidden ? 10000 : 2000);
  }
}
