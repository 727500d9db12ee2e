// Plan: what would be if the cluster, the weights or the policy were different; the controller's own queue, simulated forward.

import { useRef, useState } from "preact/hooks";
import { type ServerEvent, events } from "../api";
import { digits, dollars, percent, span } from "../format";
import { Card, Empty, Table } from "../parts";
import type { State } from "../state";

interface Estimate {
  mean: number | null;
  half: number | null;
}

interface Difference {
  change: { text: string };
  numbers: Record<string, Estimate>;
  against: Record<string, Estimate>;
  changes_nothing: boolean;
  gains: Record<string, number>;
  losses: Record<string, number>;
  jobs_that_gain: number;
  jobs_that_lose: number;
  teams: Record<string, number>;
}

interface Made {
  jobs: number;
  seeds: number;
  base: Record<string, Estimate>;
  changes: Difference[];
}

interface Found {
  goal: string;
  change: { text: string } | null;
  dollars_per_hour: number | null;
  complete: boolean;
  tried: Record<string, Estimate>;
}

export function Plan({ state }: { state: State }) {
  if (state.server !== "up") return <Elsewhere state={state} />;
  if (state.session?.role !== "admin")
    return <Card title="What if?"><Empty>Plans tell of the jobs of all teams, so they are for admins; your token is of the role {state.session?.role}.</Empty></Card>;
  return <Planner />;
}

function Planner() {
  const [changes, setChanges] = useState("");
  const [goal, setGoal] = useState("");
  const [types, setTypes] = useState("");
  const [seeds, setSeeds] = useState(5);
  const [progress, setProgress] = useState<{ done: number; total: number } | null>(null);
  const [made, setMade] = useState<Made | null>(null);
  const [found, setFound] = useState<Found | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const control = useRef<AbortController | null>(null);
  const plan = async () => {
    control.current = new AbortController();
    setTrouble(null);
    setMade(null);
    setFound(null);
    const lines = changes.split("\n").map((line) => line.trim()).filter(Boolean);
    setProgress({ done: 0, total: goal.trim() ? 0 : (lines.length + 1) * seeds }); // a search does not know how many it takes
    const asked = goal.trim() ? { find: goal.trim(), types: types.split(/[,\s]+/).filter(Boolean), seeds } : { changes: lines, seeds };
    try {
      const options = { method: "POST", body: JSON.stringify(asked), headers: { "Content-Type": "application/json" } };
      for await (const event of events("plan", control.current.signal, options)) take(event);
    } catch (error) {
      if ((error as Error).name !== "AbortError") setTrouble((error as Error).message);
    }
    setProgress(null);
  };
  const take = (event: ServerEvent) => {
    const data = JSON.parse(event.data);
    if (event.event === "progress") setProgress((before) => ({ done: data.done, total: before?.total ?? 0 }));
    else if (event.event === "failed") setTrouble(data.detail ?? "the plan failed");
    else if (event.event === "plan") data.goal === undefined ? setMade(data) : setFound(data);
  };
  return (
    <>
      <Card title="What if?" note="The jobs that are here, simulated forward on the real engine with several seeds, as they are and with each change. Nothing changes in the cluster.">
        <form onSubmit={(event) => { event.preventDefault(); void plan(); }}>
          <label class="wide">Changes, one on each line
            <textarea rows={3} value={changes} placeholder={"add v100=4\nremove k80=2, policy fifo\nweight vision=2"} onInput={(event) => setChanges(event.currentTarget.value)} disabled={goal.trim() !== ""} />
          </label>
          <div class="filters">
            <label>or the cheapest addition for a goal <input value={goal} placeholder="p95 wait < 1h" onInput={(event) => setGoal(event.currentTarget.value)} /></label>
            <label>of types <input value={types} placeholder="v100, a100" onInput={(event) => setTypes(event.currentTarget.value)} /></label>
            <label>Seeds <input type="number" min={1} max={20} value={seeds} onInput={(event) => setSeeds(Number(event.currentTarget.value) || 1)} /></label>
            <button type="submit" class="primary" disabled={progress !== null || !(changes.trim() || goal.trim())}>Plan</button>
            {progress !== null && <button type="button" onClick={() => control.current?.abort()}>Stop</button>}
          </div>
        </form>
        {progress !== null && <p role="status"><progress aria-label="Simulations" max={progress.total || undefined} value={progress.total ? progress.done : undefined} /> {progress.total ? `${progress.done} of ${progress.total} simulations` : `${progress.done} simulations`}</p>}
        {trouble && <p class="trouble" role="alert">{trouble}</p>}
      </Card>
      {made && <Outcome made={made} />}
      {found && (
        <Card title={`The cheapest addition for ${found.goal}`}>
          <p>{found.change === null ? "Nothing that was tried reaches it." : <><strong>{found.change.text}</strong>{found.dollars_per_hour ? `, ${dollars(found.dollars_per_hour)}/h more` : ""}</>}</p>
          <Table
            label="What was tried" rows={Object.entries(found.tried)} keyOf={([name]) => name}
            columns={[{ name: "tried", cell: ([name]) => name }, { name: "comes to", number: true, cell: ([, value]) => said(found.goal, value) }]}
          />
        </Card>
      )}
    </>
  );
}

function Outcome({ made }: { made: Made }) {
  const names = Object.keys(made.base).filter((name) => made.base[name].mean !== null);
  const rows = [{ text: "as it is", numbers: made.base, against: null as Record<string, Estimate> | null, one: null as Difference | null },
    ...made.changes.map((one) => ({ text: one.change.text, numbers: one.numbers, against: one.against, one }))];
  return (
    <>
      <Card title="What would come of it" note={`${made.jobs} jobs, ${made.seeds} seed${made.seeds === 1 ? "" : "s"}; below each number its difference from leaving things as they are, with the 95 % interval.`}>
        <Table
          label="What would come of it" rows={rows} keyOf={(row) => row.text}
          columns={[
            { name: "change", cell: (row) => <><strong>{row.text}</strong>{row.one?.changes_nothing ? <div class="faint">changes nothing</div> : ""}</> },
            ...names.map((name) => ({
              name: name.replaceAll("_", " "), number: true,
              cell: (row: (typeof rows)[number]) => <>{said(name, { ...row.numbers[name], half: null })}{row.against?.[name] && <div class="faint">{signed(name, row.against[name])}</div>}</>,
            })),
          ]}
        />
      </Card>
      {made.changes.map((one) => (
        <Card key={one.change.text} title={`Who gains and who loses: ${one.change.text}`} note={`${one.jobs_that_gain} jobs finish earlier, ${one.jobs_that_lose} later.`}>
          <div class="columns">
            <Jobs label="Gain most" jobs={one.gains} />
            <Jobs label="Lose most" jobs={one.losses} />
          </div>
          {Object.keys(one.teams).length > 0 && <p>Teams, mean change of the completion time: {Object.entries(one.teams).map(([team, seconds]) => `${team} ${seconds > 0 ? "+" : "−"}${span(Math.abs(seconds))}`).join(", ")}.</p>}
        </Card>
      ))}
    </>
  );
}

function Jobs({ label, jobs }: { label: string; jobs: Record<string, number> }) {
  return (
    <Table
      label={label} rows={Object.entries(jobs)} keyOf={([job]) => job} first={10}
      columns={[{ name: label.toLowerCase(), cell: ([job]) => <a href={`#/jobs/${encodeURIComponent(job)}`}>{job}</a> }, { name: "by", number: true, cell: ([, seconds]) => span(Math.abs(seconds)) }]}
    />
  );
}

const PLAIN = /unfinished|rho|jobs|preempt/;

function said(name: string, { mean, half }: Estimate): string {
  const show = /cost|dollar/.test(name) ? dollars : /utili|slo|part|met/.test(name) ? percent : PLAIN.test(name) ? digits : span;
  return half === null ? show(mean) : `${show(mean)} ± ${show(half)}`;
}

function signed(name: string, { mean, half }: Estimate): string {
  if (mean === null) return "";
  return `${mean > 0 ? "+" : mean < 0 ? "−" : "±"}${said(name, { mean: Math.abs(mean), half })}`;
}

function Elsewhere({ state }: { state: State }) {
  return (
    <Card title="What if?" note="Planning simulates jobs forward on the real engine, which takes seconds of all cores: it runs where you call it, not in this page.">
      <p>Try the same jobs under other policies and on other clusters:</p>
      <pre class="code" tabIndex={0}>{state.saved?.command ? `${state.saved.command} --save other.fairway` : "fairway plan --help\nfairway simulate training --help"}</pre>
      <p class="faint">A saved run with several policies shows them side by side under Overview.</p>
    </Card>
  );
}
