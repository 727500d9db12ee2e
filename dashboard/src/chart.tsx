// Lines over time with uPlot: colours from the theme, a legend that says the values under the pointer.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onTheme } from "./colours";
import { clock, digits, mark, unitOf } from "./format";

export interface Line {
  name: string;
  values: (number | null)[];
  colour: string;
  dash?: number[];
  fill?: boolean;
}

interface Props {
  time: number[];
  lines: Line[];
  label: string;
  height?: number;
  unit?: string;
  beginsAt?: number | null;
  most?: number;
  digitsOf?: (value: number) => string;
}

export function Chart({ time, lines, label, height = 200, unit = "", beginsAt = null, most, digitsOf }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const names = lines.map((line) => `${line.name}${line.colour}`).join("|");
  const [word, seconds] = unitOf(time[time.length - 1] ?? 1);
  const data = (): uPlot.AlignedData => [
    beginsAt === null ? time.map((at) => at / seconds) : time.map((at) => at + beginsAt),
    ...lines.map((line) => line.values),
  ];
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      const style = getComputedStyle(place.current!);
      const [faint, line] = ["--faint", "--line"].map((name) => style.getPropertyValue(name).trim());
      const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
      const said = (value: number | null) => (value === null ? "–" : `${digitsOf ? digitsOf(value) : digits(value)}${unit}`);
      plot.current = new uPlot(
        {
          width: Math.max(place.current!.clientWidth, 200),
          height,
          scales: { x: { time: beginsAt !== null }, y: { range: (_, low, high) => [Math.min(low ?? 0, 0), most ?? Math.max((high ?? 1) * 1.05, 1e-9)] } },
          axes: [
            { ...axis, space: 80, ...(beginsAt !== null ? { values: (_: uPlot, marks: number[]) => marks.map((at) => mark(at, marks.length > 1 ? marks[1] - marks[0] : 1)) } : {}), ...(beginsAt === null ? { values: (_: uPlot, marks: number[]) => marks.map((mark) => `${+mark.toPrecision(10)} ${word}`) } : {}) },
            { ...axis, size: 58, values: (_: uPlot, marks: number[]) => marks.map((mark) => said(mark)) },
          ],
          series: [
            { label: "at", value: (_: uPlot, at: number | null) => (at === null ? "–" : beginsAt === null ? `${digits(at)} ${word}` : clock(at)) },
            ...lines.map((one) => ({
              label: one.name,
              stroke: onTheme(one.colour, style),
              width: 1.6,
              dash: one.dash,
              points: { show: false },
              fill: one.fill ? `${onTheme(one.colour, style)}2c` : undefined,
              value: (_: uPlot, value: number | null) => said(value),
            })),
          ],
          cursor: { drag: { x: true, y: false } },
          legend: { live: true },
        },
        data(),
        place.current!,
      );
    };
    make();
    const watcher = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(place.current?.clientWidth ?? 200, 200), height }));
    watcher.observe(place.current!);
    addEventListener("themechange", make);
    return () => {
      watcher.disconnect();
      removeEventListener("themechange", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, height, word, beginsAt === null]);
  useEffect(() => plot.current?.setData(data(), plot.current.scales.x.min === undefined || beginsAt === null || true));
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}
