// Jobs: search and filters over all of them, and a page for each.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, ask, get, post, type Explanation, type JobDetails } from "../api";
import { colourOf } from "../colours";
import { digits, dollars, moment, plural, span } from "../format";
import { Gantt, type GanttRow } from "../gantt";
import { Badge, Card, Empty, Table, Tile } from "../parts";
import { ACTIVE, type TrainingRun } from "../run";
import { type State, change } from "../state";

export function Jobs({ run, state }: { run: TrainingRun; state: State }) {
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState("");
  const [team, setTeam] = useState("");
  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const { jobs } = run;
    const found: number[] = [];
    for (let k = jobs.id.length - 1; k >= 0; k--) {
      if (only === "active" ? !ACTIVE.has(jobs.state[k]) : only && jobs.state[k] !== only) continue;
      if (team && jobs.team[k] !== team) continue;
      const text = `${jobs.id[k]} ${jobs.name[k] ?? ""} ${jobs.type[k] ?? ""} ${jobs.user[k] ?? ""} ${jobs.team[k] ?? ""}`.toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(k);
    }
    return found;
  }, [run, search, only, team]);
  const { jobs } = run;
  const waited = (k: number) => (jobs.started[k] ?? (ACTIVE.has(jobs.state[k]) ? run.end : null) ?? jobs.submitted[k]) - jobs.submitted[k];
  return (
    <Card title="Jobs">
      <div class="filters">
        <label>Search <input type="search" value={search} placeholder="id, name, type, user, team" onInput={(event) => setSearch(event.currentTarget.value)} /></label>
        <label>State <select value={only} onChange={(event) => setOnly(event.currentTarget.value)}>
          <option value="">all</option>
          <option value="active">not ended</option>
          {["queued", "running", "preempting", "succeeded", "failed", "cancelled"].map((one) => <option key={one}>{one}</option>)}
        </select></label>
        <label>Team <select value={team} onChange={(event) => setTeam(event.currentTarget.value)}>
          <option value="">all</option>
          {run.teams.name.map((one) => <option key={one}>{one}</option>)}
        </select></label>
        <span class="faint" role="status">{`${rows.length.toLocaleString("en")} of ${jobs.id.length.toLocaleString("en")}`}</span>
      </div>
      <Table
        label="Jobs" rows={rows} keyOf={(k) => jobs.id[k]}
        columns={[
          { name: "job", sort: (k) => k, cell: (k) => <a href={`#/jobs/${encodeURIComponent(jobs.id[k])}`}>{jobs.id[k]}</a> },
          { name: "name", sort: (k) => jobs.name[k] ?? jobs.type[k], cell: (k) => jobs.name[k] ?? jobs.type[k] ?? "" },
          { name: "team", sort: (k) => jobs.team[k], cell: (k) => jobs.team[k] ?? "" },
          { name: "state", sort: (k) => jobs.state[k], cell: (k) => <Badge state={jobs.state[k]} /> },
          { name: "asks for", cell: (k) => jobs.asked[k] ?? `${jobs.count[k]} of any type` },
          { name: "submitted", number: true, sort: (k) => jobs.submitted[k], cell: (k) => moment(jobs.submitted[k], run.begins_at) },
          { name: "waited", number: true, sort: waited, cell: (k) => span(waited(k)) },
          { name: "took", number: true, sort: (k) => (jobs.ended[k] === null ? null : jobs.ended[k]! - jobs.submitted[k]), cell: (k) => (jobs.ended[k] === null ? "" : span(jobs.ended[k]! - jobs.submitted[k])) },
          { name: "preempted", number: true, sort: (k) => jobs.preemptions[k], cell: (k) => digits(jobs.preemptions[k] ?? 0) },
          { name: "why", cell: (k) => <span class="why" title={jobs.reason[k] ?? ""}>{jobs.reason_code[k] ?? ""}</span> },
        ]}
      />
      {state.server === "up" && run.jobs.id.length === 0 && <Empty>No job was submitted yet: <code>fairway submit --gpus 1 -- python train.py</code></Empty>}
    </Card>
  );
}

export function JobPage({ run, state, id }: { run: TrainingRun; state: State; id: string }) {
  const k = run.jobs.id.indexOf(id);
  const held = useMemo(() => run.leases.job.flatMap((job, row) => (job === k || run.leases.partner[row] === k ? [row] : [])), [run, k]);
  if (k < 0) return <Card title={`Job ${id}`}><Empty>This run has no such job, or you may not see it.</Empty></Card>;
  const { jobs, leases, attempts } = run;
  const rows = run.types.flatMap((type, column): GanttRow[] => {
    const mine = held.filter((row) => leases.type[row] === column).sort((a, b) => leases.start[a] - leases.start[b]);
    return mine.length ? [{ label: type, start: mine.map((row) => leases.start[row]), end: mine.map((row) => leases.end[row] ?? run.end), id: mine }] : [];
  });
  const attempted = attempts.job.flatMap((job, row) => (job === k ? [row] : []));
  if (attempted.length)
    rows.unshift({ label: "attempts", start: attempted.map((row) => attempts.start[row]), end: attempted.map((row) => attempts.end[row] ?? run.end), id: attempted.map((row) => -1 - row) });
  const until = jobs.ended[k] ?? run.end;
  const ran = held.reduce((sum, row) => sum + (leases.end[row] ?? run.end) - leases.start[row], 0);
  const cost = held.reduce((sum: number | null, row) => {
    const price = run.prices[run.types[leases.type[row]]];
    const share = leases.partner[row] >= 0 ? 0.5 : 1;
    return sum === null || price === undefined ? null : sum + (share * price * leases.workers[row].length * ((leases.end[row] ?? run.end) - leases.start[row])) / 3600;
  }, 0);
  const may = state.server === "up" && ACTIVE.has(jobs.state[k]) && state.session !== null && (state.session.role === "admin" || (state.session.role === "member" && state.session.team === jobs.team[k]));
  return (
    <>
      <div class="heading">
        <h1>{id}</h1>
        <Badge state={jobs.state[k]} />
        <span class="faint">{[jobs.name[k] ?? jobs.type[k], jobs.team[k] && `team ${jobs.team[k]}`, jobs.user[k] && `by ${jobs.user[k]}`].filter(Boolean).join(" · ")}</span>
        {may && <Cancel id={id} />}
      </div>
      {jobs.reason[k] && <p class="reason"><strong>{jobs.reason_code[k]}</strong> {jobs.reason[k]}</p>}
      <div class="tiles">
        <Tile name="Submitted" value={moment(jobs.submitted[k], run.begins_at)} note={jobs.asked[k] ?? `${jobs.count[k]} of any type`} />
        <Tile name="Waited to start" value={span((jobs.started[k] ?? (ACTIVE.has(jobs.state[k]) ? run.end : jobs.submitted[k])) - jobs.submitted[k])} note={jobs.started[k] === null ? "has not started" : `started ${moment(jobs.started[k], run.begins_at)}`} />
        <Tile name="Ran" value={span(ran)} note={`in ${held.length} lease${held.length === 1 ? "" : "s"}, preempted ${plural(jobs.preemptions[k] ?? 0, "time")}`} />
        <Tile name={jobs.ended[k] === null ? "So far" : "From start to end"} value={span(until - jobs.submitted[k])} note={jobs.deadline[k] === null ? "no deadline" : `deadline ${moment(jobs.deadline[k], run.begins_at)}`} />
        <Tile name="Steps left" value={digits(jobs.steps_left[k])} note={jobs.steps[k] === null ? "not known" : `of ${digits(jobs.steps[k])}`} />
        <Tile name="Cost" value={dollars(cost)} note={cost === null ? "types have no prices" : "of the workers that it held"} />
      </div>
      <Card title="Where it ran" note="Leases by type: the right to run on some workers. A gap is a wait, or a preemption.">
        {rows.length ? (
          <Gantt
            rows={rows} begin={jobs.submitted[k]} end={Math.max(until, jobs.submitted[k] + 1e-3)} label={`Leases of ${id}`} height={260} beginsAt={run.begins_at}
            colour={(bar) => (bar < 0 ? (attempts.outcome[-1 - bar] === "failed" ? "#b32d2d" : "#5b6b7f") : colourOf(leases.type[bar]))}
            text={(bar) => (bar < 0 ? (attempts.outcome[-1 - bar] ?? "runs") : leases.workers[bar].join(", "))}
            tip={(bar) => (bar < 0
              ? [`attempt ${attempts.attempt[-1 - bar]}: ${attempts.outcome[-1 - bar] ?? "runs"}`, attempts.reason[-1 - bar] ?? ""]
              : [`lease ${leases.number[bar]} on ${run.types[leases.type[bar]]} ${leases.workers[bar].join(", ")}`, `${moment(leases.start[bar], run.begins_at)}, ${span((leases.end[bar] ?? run.end) - leases.start[bar])}`, leases.reason[bar] ?? ""])}
          />
        ) : <Empty>It has not held any worker yet.</Empty>}
      </Card>
      {state.server === "up" && <LivePart id={id} live={ACTIVE.has(jobs.state[k])} changes={`${jobs.state[k]}${jobs.attempts[k]}`} />}
    </>
  );
}

function Cancel({ id }: { id: string }) {
  const [asked, setAsked] = useState(false);
  const act = async () => {
    setAsked(false);
    try {
      await post(`jobs/${encodeURIComponent(id)}/cancel`);
      change({ notice: `${id} is to be cancelled; a job that runs is stopped first.` });
    } catch (error) {
      change({ notice: `${id} was not cancelled: ${(error as Error).message}` });
    }
  };
  return asked ? (
    <span class="ask" role="alertdialog" aria-label={`Cancel ${id}?`}>
      Cancel this job?
      <button type="button" class="danger" onClick={() => void act()}>Yes, cancel it</button>
      <button type="button" onClick={() => setAsked(false)}>No</button>
    </span>
  ) : <button type="button" class="danger" onClick={() => setAsked(true)}>Cancel job</button>;
}

/** What only a controller can say: why it waits, measured rates, the end of its log. */
function LivePart({ id, live, changes }: { id: string; live: boolean; changes: string }) {
  const [why, setWhy] = useState<Explanation | null>(null);
  const [details, setDetails] = useState<JobDetails | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    let gone = false;
    const path = `jobs/${encodeURIComponent(id)}`;
    const fail = (error: unknown) => !gone && setTrouble((error as Error).message);
    get<JobDetails>(path).then((found) => !gone && setDetails(found)).catch(fail);
    if (live) get<Explanation>(`${path}/explain`).then((found) => !gone && setWhy(found)).catch(fail);
    else setWhy(null);
    return () => { gone = true; };
  }, [id, live, changes]);
  return (
    <>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      {why && (
        <Card title="Why it is where it is">
          <p><strong>{why.code}</strong> {why.reason}</p>
          {why.position !== null && why.position !== undefined && <p>{`Place ${why.position} of ${why.waiting} that wait.`}</p>}
          {why.state === "running" && why.prediction?.finish_at && <p>{`Expected to finish at ${moment(why.prediction.finish_at, 0)} (${why.prediction.basis}).`}</p>}
          {why.state === "queued" && why.prediction?.start_at && <p>{`Expected to start at ${moment(why.prediction.start_at, 0)} (${why.prediction.basis}).`}</p>}
          {why.smallest_change && <p>The smallest change that would start it: <strong>{why.smallest_change}</strong></p>}
          {(why.ahead ?? []).length > 0 && (
            <Table
              label="Who is ahead" rows={why.ahead!} keyOf={(one) => one.job + one.accelerator} first={10}
              columns={[
                { name: "who is ahead", cell: (one) => <a href={`#/jobs/${encodeURIComponent(one.job)}`}>{one.job}</a> },
                { name: "team", cell: (one) => one.team ?? "" },
                { name: "has", cell: (one) => `${one.workers} ${one.accelerator}` },
                { name: "why", cell: (one) => one.why },
              ]}
            />
          )}
        </Card>
      )}
      {details && details.rates.length > 0 && (
        <Card title="Measured rates">
          <Table
            label="Measured rates" rows={details.rates} keyOf={(one) => `${one.accelerator}${one.beside}`}
            columns={[
              { name: "type", cell: (one) => one.accelerator },
              { name: "beside", cell: (one) => one.beside ?? "alone" },
              { name: "steps/s", number: true, cell: (one) => digits(one.steps_per_second) },
              { name: "measured", cell: (one) => moment(one.measured_at, 0) },
            ]}
          />
        </Card>
      )}
      <Log id={id} live={live} />
      {details && (
        <Card title="Description">
          <pre class="code" tabIndex={0}>{JSON.stringify(hidden(details.spec), null, 2)}</pre>
        </Card>
      )}
    </>
  );
}

/** Values of the environment may be secrets: on a screen that others see, their names are enough. */
const hidden = (spec: Record<string, unknown>): Record<string, unknown> => {
  const env = spec.env ?? spec.envs;
  if (env === null || typeof env !== "object") return spec;
  return { ...spec, [spec.env ? "env" : "envs"]: Object.fromEntries(Object.keys(env).map((name) => [name, "…"])) };
};

const TAIL = 64 * 1024;

function Log({ id, live }: { id: string; live: boolean }) {
  const [text, setText] = useState("");
  const [trouble, setTrouble] = useState<string | null>(null);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const control = new AbortController();
    setText("");
    setTrouble(null);
    void (async () => {
      try {
        const answer = await ask(`jobs/${encodeURIComponent(id)}/logs?follow=${live}`, { signal: control.signal });
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) return;
          setText((before) => (before + value).slice(-TAIL));
        }
      } catch (error) {
        if ((error as Error).name !== "AbortError") setTrouble(error instanceof Refused ? error.message : "the log was cut off; the page asks again when the job changes");
      }
    })();
    return () => control.abort();
  }, [id, live]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <Card title="Log" note={`The last ${TAIL / 1024} KiB.`}>
      {trouble && <p class="trouble">{trouble}</p>}
      <pre class="code log" ref={box} tabIndex={0} aria-label="Log">{text || (trouble ? "" : "Nothing was written yet.")}</pre>
    </Card>
  );
}
