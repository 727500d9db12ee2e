// Colours that are told apart in light and dark, and on which white text can be read (at least 4.5 to 1).

const PALETTE = ["#2f6fb2", "#a04e00", "#1e7d5c", "#8a4bb0", "#b03056", "#4f6f1f", "#00727f", "#7c5f1c", "#5560c4", "#a33f93"];
export const GREY = "#6b7280";

export const colourOf = (number: number): string => PALETTE[((number % PALETTE.length) + PALETTE.length) % PALETTE.length];

/** The same colour, lighter where the ground is dark. */
export function onTheme(colour: string, style: CSSStyleDeclaration): string {
  const ground = style.getPropertyValue("--card").trim();
  if (parseInt(ground.slice(1, 3), 16) > 127) return colour;
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `#${parts.map((part) => Math.round(part + (255 - part) * 0.42).toString(16).padStart(2, "0")).join("")}`;
}

export function colourOfText(text: string): string {
  let sum = 0;
  for (let k = 0; k < text.length; k++) sum = (sum * 31 + text.charCodeAt(k)) | 0;
  return colourOf(Math.abs(sum));
}
