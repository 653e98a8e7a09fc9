/** Line icons in the colour of the text around them. */
import type { JSX } from "preact";

const PATHS = {
  add: "M8 3v10M3 8h10",
  check: "M3 8.5l3.2 3.2L13 5",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M4 6l4 4 4-4",
  edit: "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  question:
    "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM6.2 6.3a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.6-.8 1.2M8 11.3h.01",
  send: "M8 13V3.5M4 7.2l4-4 4 4",
  shield: "M8 1.8l5 1.8v4c0 3.2-2.1 5.6-5 6.8-2.9-1.2-5-3.6-5-6.8v-4z",
  stop: "M4.5 4.5h7v7h-7z",
  undo: "M5.5 3L2.5 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6.5",
  warning: "M8 2.2L14.3 13.5H1.7zM8 6.4v3.4M8 11.7h.01",
  dot: "M8 8h.01",
  refused: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM4 12L12 4",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3L14 14",
  move: "M2.5 8h10.5M9.5 4.5L13 8l-3.5 3.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
