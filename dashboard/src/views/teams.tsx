// Teams: what each received against its fair share, over time and in all; accelerator hours and money.

import { useMemo } from "preact/hooks";
import { Chart } from "../chart";
import { colourOf } from "../colours";
import { digits, dollars, percent } from "../format";
import { binsOf, teamShares, teamsPart } from "../measures";
import { Card, Empty, Table } from "../parts";
import type { TrainingRun } from "../run";

export function Teams({ run }: { run: TrainingRun }) {
  const { bins, shares } = useMemo(() => {
    const found = binsOf(run.end);
    return { bins: found, shares: teamShares(run, found) };
  }, [run]);
  const users = useMemo(() => usersOf(run), [run]);
  if (!shares.length) return <Card title="Teams"><Empty>No job was submitted yet.</Empty></Card>;
  return (
    <>
      <Card title="Received against fair share" note="Solid: workers held. Dashed: the share by weight among the teams that have jobs at that moment; what a team's jobs cannot use goes to the others.">
        <Chart
          label="Workers that each team held, and its fair share, over time" height={280} time={bins.time} beginsAt={run.begins_at}
          lines={shares.flatMap((share, k) => [
            { name: share.name, values: share.received, colour: colourOf(k) },
            { name: `${share.name}: fair`, values: share.fair, colour: colourOf(k), dash: [5, 4] },
          ])}
        />
      </Card>
      <Card title="In all">
        <Table
          label="Teams" rows={shares} keyOf={(share) => share.name}
          columns={[
            { name: "team", sort: (share) => share.name, cell: (share) => share.name },
            { name: "weight", number: true, sort: (share) => share.weight, cell: (share) => digits(share.weight) },
            { name: "jobs", number: true, sort: (share) => share.jobs, cell: (share) => digits(share.jobs) },
            { name: "succeeded", number: true, sort: (share) => share.done, cell: (share) => digits(share.done) },
            { name: "accelerator hours", number: true, sort: (share) => share.seconds, cell: (share) => digits(share.seconds / 3600) },
            { name: "received, of its fair share", number: true, sort: (share) => teamsPart(share), cell: (share) => percent(teamsPart(share)) },
            { name: "cost", number: true, sort: (share) => share.dollars, cell: (share) => dollars(share.dollars) },
          ]}
        />
      </Card>
      {users.length > 0 && (
        <Card title="By user">
          <Table
            label="Users" rows={users} keyOf={(user) => `${user.team}/${user.name}`}
            columns={[
              { name: "user", sort: (user) => user.name, cell: (user) => user.name },
              { name: "team", sort: (user) => user.team, cell: (user) => user.team },
              { name: "jobs", number: true, sort: (user) => user.jobs, cell: (user) => digits(user.jobs) },
              { name: "accelerator hours", number: true, sort: (user) => user.seconds, cell: (user) => digits(user.seconds / 3600) },
              { name: "cost", number: true, sort: (user) => user.dollars, cell: (user) => dollars(user.dollars) },
            ]}
          />
        </Card>
      )}
    </>
  );
}

interface User {
  name: string;
  team: string;
  jobs: number;
  seconds: number;
  dollars: number | null;
}

function usersOf(run: TrainingRun): User[] {
  const found = new Map<string, User>();
  const of = (job: number) => {
    const name = run.jobs.user[job];
    if (name === null) return null;
    const team = run.jobs.team[job] ?? "";
    const key = `${team}/${name}`;
    if (!found.has(key)) found.set(key, { name, team, jobs: 0, seconds: 0, dollars: 0 });
    return found.get(key)!;
  };
  run.jobs.id.forEach((_, job) => {
    const user = of(job);
    if (user) user.jobs += 1;
  });
  run.leases.job.forEach((job, k) => {
    const members = [job, run.leases.partner[k]].filter((one) => one >= 0);
    for (const member of members) {
      const user = of(member);
      if (!user) continue;
      const seconds = (((run.leases.end[k] ?? run.end) - run.leases.start[k]) * run.leases.workers[k].length) / members.length;
      const price = run.prices[run.types[run.leases.type[k]]];
      user.seconds += seconds;
      user.dollars = price === undefined || user.dollars === null ? null : user.dollars + (seconds * price) / 3600;
    }
  });
  return [...found.values()];
}
