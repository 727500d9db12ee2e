// By which colour and line each run is known in all charts: a colour for its policy, a dash for which of its seeds.

import { colourOf } from "./colours";
import type { Run } from "./run";

export interface Look {
  run: Run;
  name: string;
  policy: string;
  colour: string;
  /** As SVG has it, and as a canvas has it. */
  dash: string | undefined;
  dashes: number[] | undefined;
}

const DASHES = [undefined, [7, 4], [2, 3], [10, 3, 2, 3]];

export function looksOf(runs: Run[]): Look[] {
  const policies = [...new Set(runs.map(policyOf))];
  const before = new Map<string, number>();
  return runs.map((run) => {
    const policy = policyOf(run);
    const place = policies.indexOf(policy);
    const repeat = before.get(policy) ?? 0;
    before.set(policy, repeat + 1);
    const dashes = DASHES[(repeat + Math.floor(place / 10)) % DASHES.length];
    const alone = runs.filter((other) => policyOf(other) === policy).length === 1;
    return { run, name: alone ? policy : run.label, policy, colour: colourOf(place), dash: dashes?.join(" "), dashes };
  });
}

export const policyOf = (run: Run): string => run.policy ?? run.label;
