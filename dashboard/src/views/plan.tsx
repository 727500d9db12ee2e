// Plan: what would be if the cluster, the weights or the policy were different.

import { Card } from "../parts";
import type { State } from "../state";

export function Plan({ state }: { state: State }) {
  return (
    <Card title="What if?" note="Planning simulates the queue forward on the real engine, which takes seconds of all cores: it runs where you call it, not in the controller.">
      <p>{state.server === "up" ? "Save what happened, and try it under other policies and on other clusters:" : "Try the same jobs under other policies and on other clusters:"}</p>
      <pre class="code" tabIndex={0}>
        {state.saved?.command
          ? `${state.saved.command} --save other.fairway`
          : "fairway history export run.fairway\nfairway simulate training --trace jobs.csv --cluster v100=8,a100=8 -p max-min-fairness -p fifo --save other.fairway\nfairway open other.fairway"}
      </pre>
      <p class="faint">A saved run with several policies shows them side by side under Overview.</p>
    </Card>
  );
}
