// Small parts of all views.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { GREY } from "./colours";

export function Tile({ name, value, note, href }: { name: string; value: ComponentChildren; note?: ComponentChildren; href?: string }) {
  const inside = (
    <>
      <div class="tile-name">{name}</div>
      <div class="tile-value">{value}</div>
      {note !== undefined && <div class="tile-note">{note}</div>}
    </>
  );
  return href ? <a class="tile" href={href}>{inside}</a> : <div class="tile">{inside}</div>;
}

export function Card({ title, children, note }: { title: string; children: ComponentChildren; note?: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {note && <p class="faint note">{note}</p>}
      {children}
    </section>
  );
}

const STATES: Record<string, string> = {
  queued: "#8a6100", running: "#1e6fb0", preempting: "#8a4bb0", succeeded: "#1e7d4f", failed: "#b32d2d", cancelled: GREY,
  completed: "#1e7d4f", unfinished: "#8a6100", refused: "#b32d2d",
};

export const stateColour = (state: string): string => STATES[state] ?? GREY;

export function Badge({ state }: { state: string }) {
  return <span class="badge" style={{ background: stateColour(state) }}>{state}</span>;
}

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ComponentChildren;
  sort?: (row: Row) => number | string | null;
  number?: boolean;
  /** What the heading says under the pointer. */
  title?: string;
}

const PAGE = 100;

/** A table that is sorted by clicks on its headings, a hundred rows at a time. */
export function Table<Row>({ columns, rows, label, keyOf, first }: {
  columns: Column<Row>[]; rows: Row[]; label: string; keyOf: (row: Row) => string | number; first?: number;
}) {
  const [by, setBy] = useState<[number, boolean] | null>(null);
  const [page, setPage] = useState(0);
  const size = first ?? PAGE;
  let sorted = rows;
  if (by !== null && columns[by[0]].sort) {
    const of = columns[by[0]].sort!;
    const sign = by[1] ? -1 : 1;
    sorted = [...rows].sort((a, b) => {
      const [one, other] = [of(a), of(b)];
      if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
      return one < other ? -sign : one > other ? sign : 0;
    });
  }
  const pages = Math.max(Math.ceil(sorted.length / size), 1);
  const at = Math.min(page, pages - 1);
  return (
    <div class="table-box" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column, k) => (
              <th key={column.name} title={column.title} class={column.number ? "number" : ""} scope="col" aria-sort={by?.[0] === k ? (by[1] ? "descending" : "ascending") : undefined}>
                {column.sort ? (
                  <button type="button" class="plain" onClick={() => setBy([k, by?.[0] === k ? !by[1] : Boolean(column.number)])}>
                    {column.name}
                    <span aria-hidden="true">{by?.[0] === k ? (by[1] ? " ↓" : " ↑") : ""}</span>
                  </button>
                ) : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(at * size, (at + 1) * size).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => <td key={column.name} class={column.number ? "number" : ""}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="faint empty">Nothing to show.</p>}
      {pages > 1 && (
        <div class="pages">
          <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>Previous</button>
          <span>{`${at * size + 1}–${Math.min((at + 1) * size, sorted.length)} of ${sorted.length.toLocaleString("en")}`}</span>
          <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>Next</button>
        </div>
      )}
    </div>
  );
}

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="faint empty">{children}</p>;
