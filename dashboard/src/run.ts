// The saved run as the page reads it: docs/dashboard.md describes the file, fairway.dashboard.run_file writes it.

type Num = (number | null)[];
type Text = (string | null)[];

export interface TrainingRun {
  kind: "training";
  label: string;
  policy: string | null;
  settings: Record<string, unknown>;
  summary: Record<string, any>;
  begins_at: number | null;
  end: number;
  time_scale: number;
  emulated: boolean;
  types: string[];
  prices: Record<string, number>;
  workers: { type: number[]; number: number[]; node: Text; device: Text; since: Num; drained: Num; lost: Num };
  teams: { name: string[]; weight: Num };
  jobs: {
    id: string[]; name: Text; type: Text; team: Text; user: Text; state: string[]; submitted: number[]; started: Num;
    ended: Num; count: number[]; asked: Text; weight: number[]; deadline: Num; isolated: Num; attempts: Num;
    preemptions: Num; steps: Num; steps_left: Num; reason_code: Text; reason: Text; counted?: boolean[];
  };
  leases: {
    number: number[]; job: number[]; partner: number[]; type: number[]; start: number[]; end: Num; steps: Num;
    partner_steps: Num; workers: number[][]; reason: Text;
  };
  attempts: { job: number[]; attempt: number[]; start: number[]; end: Num; outcome: Text; exit_code: Num; reason: Text };
  rates: { job: number[]; type: string[]; beside: Text; steps_per_second: number[]; measured: number[] };
  rounds: { time: number[]; waiting: number[]; running: number[]; busy: number[][] };
  decisions: { entry: number[]; time: number[]; policy: string[]; body: Decision[] };
}

export interface Decision {
  policy: string;
  problem: { workers: Record<string, number>; jobs: { id: string; throughputs: Record<string, number>; entity?: string | null }[] };
  decided: { types: string[]; objective: number | null; sense: string; prices: number[] | null; jobs: string[][]; shares: number[][] };
  reasons: Record<string, { code: string; sentence: string }>;
}

export interface ServingRun {
  kind: "serving";
  label: string;
  policy: string | null;
  settings: Record<string, unknown>;
  summary: Record<string, any>;
  begins_at: number | null;
  end: number;
  emulated: boolean;
  models: string[];
  workflows: { name: string; lower_bound_seconds: number; slo_seconds: number | null; stages: string[]; edges: number[][]; budgets?: number[] }[];
  workers: {
    name: string[]; type: string[]; cpus: number[]; slices: number[]; busy_seconds: number[]; copy_seconds: number[];
    tasks: number[]; hits: number[]; partial: number[]; misses: number[]; loads: number[]; evictions: number[]; awaited?: number[];
  };
  requests: { arrival: number[]; finish: Num; workflow: number[]; outcome: string[]; counted: boolean[]; cost: Num };
  stages: {
    request: number[]; stage: number[]; worker: number[]; queued: number[]; turn: number[]; start: number[];
    end: number[]; fetch: number[]; found: string[]; batch: number[]; member: number[]; cpu: number[]; gpu: number[];
  };
  loads: { worker: number[]; model: number[]; evicted: boolean[]; ahead: boolean[]; start: number[]; end: number[] };
  staleness?: { time: number[]; load_seconds: number[]; models_wrong: number[] };
}

/** What came of runs at several loads: curves and a table instead of a run. */
export interface CurvesRun {
  kind: "curves";
  label: string;
  policy: null;
  settings: Record<string, unknown>;
  summary: Record<string, any>;
  begins_at: null;
  end: number;
  of: string;
  about: string;
  finding: string;
  charts: { title: string; note: string; x: string; y: string; x_form: string; y_form: string; across: number | null }[];
  columns: { title: string[]; meaning: string[] };
  rows: { name: string[]; look: number[] };
  cells: { row: number[]; column: number[]; text: string[]; spread: string[]; best: boolean[] };
  points: {
    chart: number[]; curve: string[]; look: number[]; seed: number[]; x: number[]; y: number[]; half: Num; open: boolean[];
    joined: boolean[]; told: string[];
  };
}

export type Run = TrainingRun | ServingRun | CurvesRun;

const TABLES: Record<string, string[]> = {
  training: ["workers", "jobs", "leases", "rounds"],
  serving: ["workers", "requests", "stages", "loads"],
  curves: ["charts", "columns", "rows", "cells", "points"],
};

export interface SavedRun {
  format: "fairway-run";
  version: number;
  fairway: string;
  command: string | null;
  origin: { kind?: string; meaning?: string };
  runs: Run[];
}

export const VERSION = 2;

/** Read the bytes of a saved run; what is none is refused by an Error of one line. */
export async function readRun(bytes: Uint8Array, name: string): Promise<SavedRun> {
  if (bytes.length < 2 || bytes[0] !== 0x1f || bytes[1] !== 0x8b)
    throw new Error(`${name}: not a saved run; give a file that --save or 'fairway history export' wrote`);
  let text: string;
  try {
    const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
    text = await new Response(stream).text();
  } catch {
    throw new Error(`${name}: cut off or damaged after ${bytes.length} bytes; copy or write it again`);
  }
  let found: any;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(`${name}: not a saved run: what is compressed in it is no JSON`);
  }
  if (found === null || typeof found !== "object" || found.format !== "fairway-run")
    throw new Error(`${name}: not a saved run; give a file that --save or 'fairway history export' wrote`);
  if (!Number.isInteger(found.version) || found.version > VERSION)
    throw new Error(`${name}: of version ${found.version}, but this page reads up to ${VERSION}; open it with a newer Fairway`);
  if (!Array.isArray(found.runs) || found.runs.length === 0) throw new Error(`${name}: no runs in it; save it again`);
  for (const run of found.runs) {
    const tables = TABLES[run?.kind];
    if (!tables || tables.some((table) => run[table] === null || typeof run[table] !== "object"))
      throw new Error(`${name}: damaged: a run in it lacks ${(tables ?? ["a kind that is known"]).join(", ")}; save it again`);
  }
  return found as SavedRun;
}

export async function packed(run: SavedRun): Promise<Blob> {
  const stream = new Blob([JSON.stringify(run)]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(stream).blob();
}

export const ACTIVE = new Set(["queued", "running", "preempting"]);
