// What came of many runs at several loads: the finding, a table, and curves.

import { useMemo } from "preact/hooks";
import { colourOf } from "../colours";
import { digits, dollars, percent } from "../format";
import { Card, Table } from "../parts";
import { type Curve, Plot } from "../plot";
import type { CurvesRun } from "../run";

const SHOWN: Record<string, (value: number) => string> = { number: digits, percent, dollars };
const DASHES = [undefined, "7 4", "2 3", "10 3 2 3"];

export function Curves({ run }: { run: CurvesRun }) {
  const cells = useMemo(() => {
    const found = new Map<string, number>();
    run.cells.row.forEach((row, k) => found.set(`${row}/${run.cells.column[k]}`, k));
    return found;
  }, [run]);
  return (
    <>
      <Card title={run.finding} note={run.about}>
        <div class="tight">
          <Table
            label="In numbers" rows={run.rows.name.map((_, row) => row)} keyOf={(row) => run.rows.name[row]} first={1000}
            columns={[
              { name: run.of, cell: (row) => <span class="curve" style={{ "--ink-of-line": colourOf(run.rows.look[row]) }}><svg width="20" height="10" aria-hidden="true"><path d="M0 5H20" /></svg> {run.rows.name[row]}</span> },
              ...run.columns.title.map((name, column) => ({
                name, title: run.columns.meaning[column], number: true,
                cell: (row: number) => {
                  const k = cells.get(`${row}/${column}`);
                  if (k === undefined) return "";
                  const { text, spread, best } = run.cells;
                  return <>{best[k] ? <strong>{text[k]}</strong> : text[k]}{spread[k] && <div class="faint">{spread[k]}</div>}</>;
                },
              })),
            ]}
          />
        </div>
      </Card>
      {run.charts.map((chart, number) => (
        <Card key={chart.title} title={chart.title} note={chart.note}>
          <Plot
            label={chart.title} height={380} xName={chart.x} yName={chart.y} xShow={SHOWN[chart.x_form] ?? digits} yShow={SHOWN[chart.y_form] ?? digits}
            yEnds={chart.y_form === "percent" ? [0, 1.02] : undefined} across={chart.across === null ? undefined : { at: chart.across, name: "searched for" }}
            curves={curvesOf(run, number)}
          />
        </Card>
      ))}
    </>
  );
}

function curvesOf(run: CurvesRun, chart: number): Curve[] {
  const found = new Map<string, Curve>();
  const { points } = run;
  points.chart.forEach((of, k) => {
    if (of !== chart) return;
    const key = `${points.curve[k]}/${points.joined[k]}`;
    const curve = found.get(key) ?? {
      name: points.curve[k], colour: colourOf(points.look[k]), dash: DASHES[points.seed[k] % DASHES.length], x: [], y: [], dots: true,
      apart: !points.joined[k], silent: !points.joined[k], open: [], half: [], told: [],
    };
    curve.x.push(points.x[k]);
    curve.y.push(points.y[k]);
    curve.open!.push(points.open[k]);
    curve.half!.push(points.half[k]);
    curve.told!.push(points.told[k]);
    found.set(key, curve);
  });
  return [...found.values()];
}
