// Numbers, spans and moments as people read them.

export function digits(value: number | null | undefined, most = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size === 0) return "0";
  return value.toLocaleString("en", { maximumSignificantDigits: most });
}

export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size < 1e-9) return "0 s";
  if (size < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (size < 1) return `${digits(seconds * 1e3)} ms`;
  if (size < 120) return `${digits(seconds)} s`;
  if (size < 7200) return `${digits(seconds / 60)} min`;
  if (size < 172800) return `${digits(seconds / 3600)} h`;
  return `${digits(seconds / 86400)} d`;
}

export const percent = (part: number | null | undefined): string =>
  part === null || part === undefined || !Number.isFinite(part) ? "–" : `${digits(part * 100)} %`;

export const dollars = (amount: number | null | undefined): string =>
  amount === null || amount === undefined || !Number.isFinite(amount) ? "–" : `$${digits(amount)}`;

/** A moment of a run: the clock where the run has one, the time since its begin otherwise. */
export function moment(seconds: number | null | undefined, beginsAt: number | null): string {
  if (seconds === null || seconds === undefined) return "–";
  if (beginsAt === null) return `+${span(seconds)}`;
  return clock(beginsAt + seconds);
}

export function clock(epoch: number): string {
  const date = new Date(epoch * 1000);
  const today = new Date().toDateString() === date.toDateString();
  const time = date.toLocaleTimeString("en-GB");
  return today ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** The unit in which times of this length are best drawn, and its seconds. */
export function unitOf(seconds: number): [string, number] {
  if (seconds < 2e-3) return ["µs", 1e-6];
  if (seconds < 2) return ["ms", 1e-3];
  if (seconds < 180) return ["s", 1];
  if (seconds < 10800) return ["min", 60];
  if (seconds < 259200) return ["h", 3600];
  return ["d", 86400];
}

/** A moment on the clock, as short as marks of an axis that are so many seconds apart allow. */
export function mark(epoch: number, apart: number): string {
  const date = new Date(epoch * 1000);
  if (apart >= 86400) return date.toLocaleDateString("en-CA");
  const time = date.toLocaleTimeString("en-GB");
  if (apart < 60) return time;
  return date.getHours() === 0 && date.getMinutes() === 0 ? date.toLocaleDateString("en-CA") : time.slice(0, 5);
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];

/** Round moments on the clock between two others, and how far they are apart; local midnight counts as round. */
export function moments(from: number, to: number, most: number): [number[], number] {
  const step = STEPS.find((each) => each >= (to - from) / most) ?? 31536000;
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  const found: number[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
  return [found, step];
}

export function plural(count: number, noun: string): string {
  return `${digits(count)} ${noun}${count === 1 ? "" : "s"}`;
}
