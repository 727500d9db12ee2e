// Decisions: each round of the scheduler: the problem, the policy, prices, who gets what share, why others wait; how to replay it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { colourOf } from "../colours";
import { digits, dollars, moment, percent } from "../format";
import { Card, Empty, Table, Tile } from "../parts";
import type { Decision, TrainingRun } from "../run";
import type { State } from "../state";

interface Entry {
  entry: number;
  time: number;
  policy: string;
  body: Decision;
}

const MOST = 1000;

export function Decisions({ run, state, chosen }: { run: TrainingRun; state: State; chosen?: number }) {
  const [live, setLive] = useState<Entry[] | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const known = useRef<Entry[]>([]);
  const admin = state.session?.role === "admin";
  const rounds = state.status?.rounds;
  useEffect(() => {
    if (state.server !== "up" || !admin) return;
    let gone = false;
    void (async () => {
      try {
        const found: Entry[] = [];
        let after: number | null = known.current[known.current.length - 1]?.entry ?? 0;
        while (after !== null) {
          const page: { entries: { sequence: number; at: number; name: string; body: unknown }[]; next: number | null } = await get(`journal?kind=decision&limit=200&after=${after}`);
          found.push(...page.entries.map((one) => ({ entry: one.sequence, time: one.at - (run.begins_at ?? 0), policy: one.name, body: one.body as Decision })));
          if (gone) return;
          after = page.next;
        }
        if (!found.length && live) return;
        known.current = [...known.current, ...found].slice(-MOST);
        setLive(known.current);
      } catch (error) {
        if (!gone) setTrouble((error as Error).message);
      }
    })();
    return () => { gone = true; };
  }, [state.server, admin, rounds]);
  const entries = useMemo<Entry[]>(
    () => live ?? run.decisions.entry.map((entry, k) => ({ entry, time: run.decisions.time[k], policy: run.decisions.policy[k], body: run.decisions.body[k] })),
    [run, live],
  );
  const picked = chosen === undefined ? undefined : entries.find((one) => one.entry === chosen);
  if (state.server === "up" && !admin) return <Card title="Decisions"><Empty>The journal, which holds the decisions, is for admins; your token is of the role {state.session?.role}.</Empty></Card>;
  if (picked) return <OneDecision one={picked} run={run} state={state} />;
  return (
    <>
      {trouble && <p class="trouble" role="alert">{trouble}</p>}
      {entries.length > 0 && (
        <Card title="Decisions of the policy" note={`What the policy was asked, and what it answered. Rounds then follow the answer until something changes.${run.summary.solves > entries.length ? ` Of ${digits(run.summary.solves)} decisions, this file keeps ${digits(entries.length)}, spread evenly.` : ""}`}>
          <Table
            label="Decisions" rows={[...entries].reverse()} keyOf={(one) => one.entry}
            columns={[
              { name: "entry", sort: (one) => one.entry, cell: (one) => <a href={`#/decisions/${one.entry}`}>{one.entry}</a> },
              { name: "decided", sort: (one) => one.time, cell: (one) => moment(one.time, run.begins_at) },
              { name: "policy", cell: (one) => one.policy },
              { name: "jobs", number: true, sort: (one) => one.body.problem.jobs.length, cell: (one) => digits(one.body.problem.jobs.length) },
              { name: "with a share", number: true, cell: (one) => digits(new Set(one.body.decided.jobs.flat()).size) },
              { name: "workers", number: true, cell: (one) => digits(Object.values(one.body.problem.workers).reduce((sum, count) => sum + count, 0)) },
              { name: "objective", number: true, sort: (one) => one.body.decided.objective, cell: (one) => digits(one.body.decided.objective, 4) },
            ]}
          />
        </Card>
      )}
      {run.rounds.time.length > 0 ? <Rounds run={run} /> : entries.length === 0 && <Card title="Decisions"><Empty>Nothing was decided yet, or the run was saved without decisions.</Empty></Card>}
    </>
  );
}

function Rounds({ run }: { run: TrainingRun }) {
  const begun = useMemo(() => {
    const counts = new Map<number, number>();
    const times = run.rounds.time;
    for (const start of run.leases.start) {
      let low = 0;
      let high = times.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle] <= start + 1e-6) low = middle;
        else high = middle - 1;
      }
      counts.set(low, (counts.get(low) ?? 0) + 1);
    }
    return counts;
  }, [run]);
  return (
    <Card title="Rounds" note="How things stood as each round had begun.">
      <Table
        label="Rounds" rows={run.rounds.time.map((_, k) => k)} keyOf={(k) => k}
        columns={[
          { name: "round", sort: (k) => k, cell: (k) => k + 1 },
          { name: "began", sort: (k) => run.rounds.time[k], cell: (k) => moment(run.rounds.time[k], run.begins_at) },
          { name: "waiting", number: true, sort: (k) => run.rounds.waiting[k], cell: (k) => digits(run.rounds.waiting[k]) },
          { name: "running", number: true, sort: (k) => run.rounds.running[k], cell: (k) => digits(run.rounds.running[k]) },
          ...run.types.map((type, column) => ({ name: `${type} busy`, number: true, sort: (k: number) => run.rounds.busy[k][column], cell: (k: number) => digits(run.rounds.busy[k][column]) })),
          { name: "leases begun", number: true, sort: (k) => begun.get(k) ?? 0, cell: (k) => digits(begun.get(k) ?? 0) },
        ]}
      />
    </Card>
  );
}

function OneDecision({ one, run, state }: { one: Entry; run: TrainingRun; state: State }) {
  const { problem, decided, reasons } = one.body;
  const types = decided.types;
  const facts = new Map(problem.jobs.map((job) => [job.id, job]));
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(problem, null, 2)], { type: "application/json" }));
    link.download = `decision-${one.entry}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <div class="heading"><h1>{`Decision ${one.entry}`}</h1><span class="faint">{`${one.policy}, ${moment(one.time, run.begins_at)}`}</span><a href="#/decisions">all decisions</a></div>
      <div class="tiles">
        <Tile name="Jobs" value={digits(problem.jobs.length)} note={`${digits(new Set(decided.jobs.flat()).size)} have a share`} />
        <Tile name="Objective" value={digits(decided.objective, 4)} note={decided.sense === "max" ? "as high as possible" : "as low as possible"} />
        {types.map((type, k) => <Tile key={type} name={type} value={`${digits(problem.workers[type])} workers`} note={decided.prices ? `price ${digits(decided.prices[k])} per share` : "no price"} />)}
      </div>
      <Card title="Who gets which share of time">
        <Table
          label="Shares" rows={decided.jobs.map((_, k) => k)} keyOf={(k) => decided.jobs[k].join("+")}
          columns={[
            { name: "job", cell: (k) => decided.jobs[k].map((job) => <a key={job} href={`#/jobs/${encodeURIComponent(job)}`}>{job} </a>) },
            { name: "team", cell: (k) => facts.get(decided.jobs[k][0])?.entity ?? "" },
            ...types.map((type, column) => ({
              name: type, number: true, sort: (k: number) => decided.shares[k][column],
              cell: (k: number) => (decided.shares[k][column] > 1e-9 ? <span class="share"><i style={{ width: `${Math.min(decided.shares[k][column], 1) * 60}px`, background: colourOf(column) }} />{percent(decided.shares[k][column])}</span> : ""),
            })),
            ...types.map((type) => ({ name: `steps/s on ${type}`, number: true, cell: (k: number) => digits(facts.get(decided.jobs[k][0])?.throughputs[type]) })),
          ]}
        />
      </Card>
      {Object.keys(reasons).length > 0 && (
        <Card title="Why the others wait">
          <Table
            label="Reasons" rows={Object.entries(reasons)} keyOf={([job]) => job}
            columns={[
              { name: "job", cell: ([job]) => <a href={`#/jobs/${encodeURIComponent(job)}`}>{job}</a> },
              { name: "code", sort: ([, reason]) => reason.code, cell: ([, reason]) => reason.code },
              { name: "why", cell: ([, reason]) => reason.sentence },
            ]}
          />
        </Card>
      )}
      <Card title="Replay" note="A decision depends on its problem only: asked again, the policy gives the same answer.">
        <pre class="code" tabIndex={0}>{state.server === "up" ? `fairway replay --after ${one.entry - 1}` : `fairway replay ${state.name.endsWith(".fairway") ? state.name : "run.fairway"} --after ${one.entry - 1}`}</pre>
        <p><button type="button" onClick={save}>Save the problem</button> and ask any policy:</p>
        <pre class="code" tabIndex={0}>{`fairway allocate decision-${one.entry}.json --policy ${one.policy} --table`}</pre>
        {run.prices && Object.keys(run.prices).length > 0 && <p class="faint">{`Dollars per hour: ${Object.entries(run.prices).map(([type, price]) => `${type} ${dollars(price)}`).join(", ")}.`}</p>}
      </Card>
    </>
  );
}
