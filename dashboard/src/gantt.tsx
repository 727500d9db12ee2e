// A timeline of many rows on one canvas: only what is in sight is drawn, so that a thousand workers scroll as smoothly as ten.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { mark as clockMark, moments, span, unitOf } from "./format";

export interface GanttRow {
  label: string;
  /** A heading above the row, where a group of rows begins. */
  group?: string;
  start: number[];
  end: number[];
  /** What each bar is, for colours, texts and clicks; bars are in the order of their starts. */
  id: number[];
}

interface Props {
  rows: GanttRow[];
  begin?: number;
  end: number;
  colour: (id: number) => string;
  text: (id: number) => string;
  tip: (id: number, row: GanttRow) => string[];
  pick?: (id: number) => void;
  label: string;
  height?: number;
  /** When the run began, where it has a clock. */
  beginsAt?: number | null;
}

const ROW = 18;
const HEAD = 22;
const AXIS = 24;
const LEFT = 108;

/** The first bar that ends after a moment. Bars of a row do not overlap, so their ends are in order, too. */
function firstAfter(ends: number[], moment: number): number {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function Gantt({ rows, begin = 0, end, colour, text, tip, pick, label, height = 520, beginsAt = null }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [range, setRange] = useState<[number, number] | null>(null);
  const [hover, setHover] = useState<{ x: number; y: number; lines: string[] } | null>(null);
  const view = range ?? [begin, Math.max(end, begin + 1e-9)];
  const tops = useMemo(() => {
    const found: number[] = [];
    let y = AXIS;
    for (const row of rows) {
      if (row.group !== undefined) y += HEAD;
      found.push(y);
      y += ROW;
    }
    found.push(y);
    return found;
  }, [rows]);
  const total = tops[tops.length - 1] + 4;
  const shown = Math.min(height, total + 2);
  const drag = useRef<{ x: number; view: [number, number]; moved: boolean } | null>(null);

  const draw = () => {
    const box = scroller.current;
    const sheet = canvas.current;
    if (!box || !sheet) return;
    const ratio = devicePixelRatio || 1;
    const width = box.clientWidth;
    const tall = box.clientHeight;
    if (sheet.width !== Math.round(width * ratio) || sheet.height !== Math.round(tall * ratio)) {
      sheet.width = Math.round(width * ratio);
      sheet.height = Math.round(tall * ratio);
      sheet.style.width = `${width}px`;
      sheet.style.height = `${tall}px`;
    }
    const pen = sheet.getContext("2d", { alpha: false })!;
    const style = getComputedStyle(box);
    const [ink, faint, line, ground] = ["--ink", "--faint", "--line", "--card"].map((name) => style.getPropertyValue(name).trim());
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = ground;
    pen.fillRect(0, 0, width, tall);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const [from, to] = view;
    const scale = (width - LEFT - 8) / (to - from);
    const at = (moment: number) => LEFT + (moment - from) * scale;
    const top = box.scrollTop;
    const [unit, seconds] = unitOf(to - from);
    const most = Math.max(Math.floor((width - LEFT) / 110), 2);
    const onClock = beginsAt !== null && to - from >= 5;
    const [hours, apart] = onClock ? moments(beginsAt + from, beginsAt + to, most) : [[], 1];
    const marks: [number, string][] = onClock
      ? hours.map((moment) => [moment - beginsAt, clockMark(moment, apart)])
      : ticks(from / seconds, to / seconds, most).map((mark) => [mark * seconds, `${+mark.toPrecision(10)} ${unit}`]);
    pen.fillStyle = line;
    for (const [moment] of marks) pen.fillRect(Math.round(at(moment)), AXIS, 1, tall);
    let k = firstAfter(tops, top) - 1;
    for (k = Math.max(k, 0); k < rows.length && tops[k] - top < tall; k++) {
      const row = rows[k];
      const y = tops[k] - top;
      if (row.group !== undefined) {
        pen.fillStyle = ink;
        pen.font = "600 12px system-ui, sans-serif";
        pen.fillText(row.group, 8, y - HEAD / 2 + 2);
        pen.font = "12px system-ui, sans-serif";
      }
      pen.fillStyle = faint;
      pen.fillText(row.label, 16, y + ROW / 2, LEFT - 22);
      let covered = -1;
      for (let bar = firstAfter(row.end, from); bar < row.start.length && row.start[bar] < to; bar++) {
        const left = Math.max(at(row.start[bar]), LEFT);
        const right = Math.min(at(row.end[bar]), width);
        if (right - covered < 0.5 && right - left < 1) continue; // nothing of it would be seen
        covered = right;
        pen.fillStyle = colour(row.id[bar]);
        const wide = Math.max(right - left - (right - left > 3 ? 1 : 0), 0.7);
        pen.fillRect(left, y + 2, wide, ROW - 4);
        if (wide > 46) {
          pen.save();
          pen.beginPath();
          pen.rect(left, y, wide - 4, ROW);
          pen.clip();
          pen.fillStyle = "#fff";
          pen.fillText(text(row.id[bar]), left + 5, y + ROW / 2 + 0.5);
          pen.restore();
        }
      }
    }
    pen.fillStyle = ground;
    pen.fillRect(0, 0, width, AXIS);
    pen.fillStyle = faint;
    pen.textAlign = "center";
    for (const [moment, words] of marks) {
      const x = at(moment);
      if (x >= LEFT - 1 && x < width - 20) pen.fillText(words, x, AXIS / 2);
    }
    pen.textAlign = "left";
    pen.fillStyle = line;
    pen.fillRect(0, AXIS - 1, width, 1);
  };

  useEffect(draw);
  useEffect(() => {
    const again = () => requestAnimationFrame(draw);
    const watcher = new ResizeObserver(again);
    watcher.observe(scroller.current!);
    addEventListener("themechange", again);
    return () => {
      watcher.disconnect();
      removeEventListener("themechange", again);
    };
  });

  const zoom = (factor: number, around = 0.5) => {
    const [from, to] = view;
    const middle = from + (to - from) * around;
    const wide = Math.min(Math.max((to - from) * factor, (end - begin) * 1e-6), end - begin);
    setClamped(middle - wide * around, wide);
  };
  const setClamped = (from: number, wide: number) => {
    if (wide >= (end - begin) * 0.999) return setRange(null);
    const first = Math.min(Math.max(from, begin), end - wide);
    setRange([first, first + wide]);
  };
  const pan = (part: number) => setClamped(view[0] + (view[1] - view[0]) * part, view[1] - view[0]);

  const found = (event: MouseEvent): [GanttRow, number] | null => {
    const box = scroller.current!;
    const rect = box.getBoundingClientRect();
    const y = event.clientY - rect.top + box.scrollTop;
    if (event.clientY - rect.top < AXIS) return null;
    const k = firstAfter(tops, y) - 1;
    if (k < 0 || k >= rows.length || y > tops[k] + ROW) return null;
    const [from, to] = view;
    const moment = from + ((event.clientX - rect.left - LEFT) / (box.clientWidth - LEFT - 8)) * (to - from);
    const slack = ((to - from) / box.clientWidth) * 2;
    const bar = firstAfter(rows[k].end, moment - slack);
    return bar < rows[k].start.length && rows[k].start[bar] <= moment + slack ? [rows[k], rows[k].id[bar]] : null;
  };

  return (
    <div class="gantt">
      <div class="tools">
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => pan(-0.4)} aria-label="Earlier">←</button>
        <button type="button" onClick={() => pan(0.4)} aria-label="Later">→</button>
        <button type="button" onClick={() => setRange(null)} disabled={range === null}>All</button>
        <span class="faint">{span(view[1] - view[0])} shown; drag to move, Ctrl and wheel to zoom, or keys: + − ← → 0</span>
      </div>
      <div
        class="gantt-box"
        ref={scroller}
        style={{ height: `${shown}px` }}
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label={`${label}: ${rows.length} rows. Keys: plus and minus zoom, left and right move, 0 shows all, up and down scroll.`}
        onScroll={() => requestAnimationFrame(draw)}
        onWheel={(event: WheelEvent) => {
          if (!event.ctrlKey && !event.metaKey) return;
          event.preventDefault();
          const rect = scroller.current!.getBoundingClientRect();
          zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max((event.clientX - rect.left - LEFT) / (rect.width - LEFT), 0), 1));
        }}
        onKeyDown={(event: KeyboardEvent) => {
          const act = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => pan(-0.25),
            ArrowRight: () => pan(0.25), "0": () => setRange(null) }[event.key];
          if (act) {
            event.preventDefault();
            act();
          }
        }}
        onPointerDown={(event: PointerEvent) => {
          drag.current = { x: event.clientX, view: [view[0], view[1]], moved: false };
        }}
        onPointerMove={(event: PointerEvent) => {
          const held = drag.current;
          if (held && event.buttons === 1) {
            const by = ((held.x - event.clientX) / (scroller.current!.clientWidth - LEFT)) * (held.view[1] - held.view[0]);
            if (Math.abs(held.x - event.clientX) > 3) held.moved = true;
            if (held.moved && range !== null) setClamped(held.view[0] + by, held.view[1] - held.view[0]);
            setHover(null);
            return;
          }
          const hit = found(event);
          const rect = scroller.current!.getBoundingClientRect();
          setHover(hit ? { x: event.clientX - rect.left, y: event.clientY - rect.top, lines: tip(hit[1], hit[0]) } : null);
        }}
        onPointerLeave={() => setHover(null)}
        onClick={(event: MouseEvent) => {
          const moved = drag.current?.moved;
          drag.current = null;
          const hit = moved ? null : found(event);
          if (hit && pick) pick(hit[1]);
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: `${total}px` }} />
      </div>
      {hover && (
        <div class="tip" style={{ left: `${Math.min(hover.x + 14, (scroller.current?.clientWidth ?? 600) - 280)}px`, top: `${hover.y + 52}px` }}>
          {hover.lines.map((line) => <div key={line}>{line}</div>)}
        </div>
      )}
    </div>
  );
}

export function ticks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? 10 * power;
  const found: number[] = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++) found.push(k * step);
  return found;
}
