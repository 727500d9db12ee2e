// Curves and points over a number that is no time: distributions, costs, loads. Linear or logarithmic, drawn as SVG.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ticks } from "./gantt";

export interface Curve {
  name: string;
  colour: string;
  dash?: string;
  x: number[];
  y: number[];
  /** Goes up at each point and not before: a distribution. */
  step?: boolean;
  /** Points are drawn, and joined by a line unless `apart`. */
  dots?: boolean;
  apart?: boolean;
  /** Which dots are drawn empty. */
  open?: boolean[];
  /** Half of the interval around each point. */
  half?: (number | null)[];
  /** What each dot says under the pointer. */
  told?: string[];
  /** Stands in no legend: a mark that belongs to another curve. */
  silent?: boolean;
}

interface Props {
  label: string;
  curves: Curve[];
  xName: string;
  yName: string;
  log?: boolean;
  xShow: (value: number) => string;
  yShow: (value: number) => string;
  /** The ends of the vertical axis, where they do not follow from the curves. */
  yEnds?: [number, number];
  across?: { at: number; name: string };
  upright?: { at: number; name: string };
  height?: number;
}

const LEFT = 62;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 44;

/** Marks of an axis with their words, so far apart that no word lies on another. */
export function marksOf(low: number, high: number, log: boolean, at: (value: number) => number, show: (value: number) => string): [number, string][] {
  let values: number[] = [];
  if (log) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const digit of [1, 2, 5]) values.push(digit * 10 ** power);
    values = values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    if (values.length < 3) values = ticks(low, high, 6);
    else values.sort((a, b) => weight(b) - weight(a) || a - b); // decades first, since they matter most
  } else values = ticks(low, high, 8);
  const kept: [number, string][] = [];
  const room = (words: string) => words.length * 3.6 + 8;
  for (const value of values) {
    const words = show(value);
    if (kept.every(([other, before]) => Math.abs(at(other) - at(value)) > room(words) + room(before) && before !== words)) kept.push([value, words]);
  }
  return kept.sort((a, b) => a[0] - b[0]);
}

const weight = (value: number): number => (Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6 ? 1 : 0);

export function Plot({ label, curves, xName, yName, log = false, xShow, yShow, yEnds, across, upright, height = 300 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const measure = () => setWidth(Math.max(place.current?.clientWidth ?? 600, 240));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(place.current!);
    return () => watcher.disconnect();
  }, []);
  const [x0, x1, y0, y1] = useMemo(() => endsOf(curves, log, yEnds, across?.at, upright?.at), [curves, log]);
  const along = (value: number) => (log ? Math.log(Math.max(value, x0) / x0) / Math.log(x1 / x0) : (value - x0) / (x1 - x0));
  const px = (value: number) => LEFT + along(value) * (width - LEFT - RIGHT);
  const py = (value: number) => height - BOTTOM - ((value - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
  const xMarks = marksOf(x0, x1, log, px, xShow);
  const yMarks = ticks(y0, y1, 5).map((value): [number, string] => [value, yShow(value)]);
  const under = (value: number): number => (log ? x0 * (x1 / x0) ** value : x0 + value * (x1 - x0));
  const joined = curves.filter((curve) => !curve.apart && !curve.silent);
  const named = curves.filter((curve) => !curve.silent);
  return (
    <div class="plot" ref={place}>
      <svg
        width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}
        onPointerMove={(event: PointerEvent) => {
          const rect = (event.currentTarget as Element).getBoundingClientRect();
          const part = (event.clientX - rect.left - LEFT) / (width - LEFT - RIGHT);
          setAt(part >= 0 && part <= 1 && joined.length ? under(part) : null);
        }}
        onPointerLeave={() => setAt(null)}
      >
        {yMarks.map(([value, words]) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={width - RIGHT} y1={py(value)} y2={py(value)} />
            <text class="axis" x={LEFT - 7} y={py(value) + 4} text-anchor="end">{words}</text>
          </g>
        ))}
        {xMarks.map(([value, words]) => (
          <g key={value}>
            <line class="grid" x1={px(value)} x2={px(value)} y1={TOP} y2={height - BOTTOM} />
            <text class="axis" x={px(value)} y={height - BOTTOM + 17} text-anchor="middle">{words}</text>
          </g>
        ))}
        <text class="axis" x={(LEFT + width - RIGHT) / 2} y={height - 7} text-anchor="middle">{xName}</text>
        <text class="axis" transform={`translate(13 ${(TOP + height - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">{yName}</text>
        {across && <line class="rule" x1={LEFT} x2={width - RIGHT} y1={py(across.at)} y2={py(across.at)}><title>{across.name}</title></line>}
        {upright && <line class="rule" x1={px(upright.at)} x2={px(upright.at)} y1={TOP} y2={height - BOTTOM}><title>{upright.name}</title></line>}
        {curves.map((curve, k) => (
          <g key={k} class="curve" style={{ "--ink-of-line": curve.colour }}>
            {!curve.apart && curve.x.length > 0 && <path d={pathOf(curve, px, py)} stroke-dasharray={curve.dash} />}
            {curve.half?.map((half, row) => {
              if (half === null) return null;
              const x = px(curve.x[row]) + (k - (curves.length - 1) / 2) * 3; // beside those of the others, not on them
              return <line key={row} x1={x} x2={x} y1={py(Math.max(curve.y[row] - half, y0))} y2={py(Math.min(curve.y[row] + half, y1))} />;
            })}
            {curve.dots && curve.x.map((value, row) => (
              <circle key={row} cx={px(value)} cy={py(curve.y[row])} r={curve.apart ? 6 : 4} class={curve.open?.[row] ? "open" : ""}><title>{curve.told?.[row] ?? `${curve.name}: ${yShow(curve.y[row])} at ${xShow(value)}`}</title></circle>
            ))}
          </g>
        ))}
        {at !== null && <line class="rule" x1={px(at)} x2={px(at)} y1={TOP} y2={height - BOTTOM} />}
      </svg>
      {named.length > 0 && (
        <p class="legend">
          {at !== null && <span class="faint">{`${xShow(at)}: `}</span>}
          {named.map((curve) => (
            <span class="key" key={curve.name}>
              <svg width={curve.apart ? 12 : 22} height="10" aria-hidden="true" class="curve" style={{ "--ink-of-line": curve.colour }}>{curve.apart ? <circle cx="6" cy="5" r="4" /> : <path d="M0 5H22" stroke-dasharray={curve.dash} />}</svg>
              {curve.name}{at !== null && !curve.apart ? ` ${valueAt(curve, at, yShow)}` : ""}
            </span>
          ))}
          {upright && <span class="key"><svg width="22" height="10" aria-hidden="true"><line class="rule" x1="0" x2="22" y1="5" y2="5" /></svg>{upright.name}</span>}
          {across && <span class="key"><svg width="22" height="10" aria-hidden="true"><line class="rule" x1="0" x2="22" y1="5" y2="5" /></svg>{across.name}</span>}
        </p>
      )}
    </div>
  );
}

function endsOf(curves: Curve[], log: boolean, yEnds: [number, number] | undefined, across?: number, upright?: number): [number, number, number, number] {
  let [x0, x1, y0, y1] = [upright ?? Infinity, upright ?? -Infinity, 0, across ?? 0];
  for (const curve of curves) {
    curve.x.forEach((x) => { x0 = Math.min(x0, x); x1 = Math.max(x1, x); });
    curve.y.forEach((y, k) => { y1 = Math.max(y1, y + (curve.half?.[k] ?? 0)); });
  }
  if (!(x1 >= x0)) [x0, x1] = log ? [1, 10] : [0, 1];
  if (log) [x0, x1] = [x0 / 1.08, Math.max(x1, x0 * 1.2) * 1.08];
  else [x0, x1] = [Math.min(x0, 0), (x1 || 1) * 1.06];
  return yEnds ? [x0, x1, ...yEnds] : [x0, x1, y0, (y1 || 1) * 1.08];
}

function pathOf({ x, y, step }: Curve, px: (value: number) => number, py: (value: number) => number): string {
  const parts = [`M${px(x[0]).toFixed(1)} ${py(step ? 0 : y[0]).toFixed(1)}`];
  for (let k = 0; k < x.length; k++) parts.push(step ? `H${px(x[k]).toFixed(1)}V${py(y[k]).toFixed(1)}` : `L${px(x[k]).toFixed(1)} ${py(y[k]).toFixed(1)}`);
  return parts.join("");
}

function valueAt({ x, y, step }: Curve, at: number, show: (value: number) => string): string {
  let k = -1;
  while (k + 1 < x.length && x[k + 1] <= at) k++;
  if (step) return show(k < 0 ? 0 : y[k]);
  if (k < 0 || k === x.length - 1) return k >= 0 && x[k] === at ? show(y[k]) : "–";
  return show(y[k] + ((y[k + 1] - y[k]) * (at - x[k])) / (x[k + 1] - x[k]));
}

const MOST_POINTS = 400;

/** The part of `total` things whose value is at most x; what never came about keeps the curve below 1. */
export function distribution(values: number[], total: number): { x: number[]; y: number[]; step: true } {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  const zeros = values.length - sorted.length;
  const count = Math.min(sorted.length, MOST_POINTS);
  const rows = Array.from({ length: count }, (_, k) => (count === 1 ? 0 : Math.round((k * (sorted.length - 1)) / (count - 1))));
  return { x: rows.map((row) => sorted[row]), y: rows.map((row) => (row + 1 + zeros) / Math.max(total, 1)), step: true };
}

export interface Bar {
  name: string;
  parts: { name: string; value: number; colour: string }[];
}

/** Horizontal bars with their values in print: read as a table, and by a reader of screens as one. */
export function Bars({ label, bars, show, total }: { label: string; bars: Bar[]; show: (value: number) => string; total?: (bar: Bar) => string }) {
  const most = Math.max(...bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0)), 1e-12);
  const stacked = bars.some((bar) => bar.parts.length > 1);
  const names = stacked ? [...new Map(bars.flatMap((bar) => bar.parts.map((part) => [part.name, part.colour] as const)))] : [];
  return (
    <>
      <table class="bars" aria-label={label}>
        <tbody>
          {bars.map((bar) => (
            <tr key={bar.name}>
              <th scope="row">{bar.name}</th>
              <td class="bar">{bar.parts.map((part) => <i key={part.name} title={`${part.name}: ${show(part.value)}`} style={{ width: `${(part.value / most) * 100}%`, background: part.colour }} />)}</td>
              <td class="number">{total ? total(bar) : show(bar.parts.reduce((sum, part) => sum + part.value, 0))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {names.length > 1 && <p class="legend">{names.map(([name, colour]) => <span class="key" key={name}><i style={{ background: colour }} />{name}</span>)}</p>}
    </>
  );
}
