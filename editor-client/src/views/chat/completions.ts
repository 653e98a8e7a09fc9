/** What the message box completes: slash commands at its beginning, and `@` with a file, the selection or problems. */
import type { Attachment } from "../../protocol";
import { postToExtension } from "./extensionHost";

const FILES_SHOWN_MAX = 8;

const SLASH_COMMANDS: readonly { readonly name: string; readonly hint: string }[] = [
  { name: "/help", hint: "list the commands" },
  { name: "/recovery", hint: "list uncertain effects" },
  { name: "/recovery inspect", hint: "compare before, intended and now" },
  { name: "/recovery confirm", hint: "accept what was found" },
  { name: "/recovery reject", hint: "do not run it again" },
  { name: "/recovery waive", hint: "continue without knowing" },
  { name: "/compact", hint: "replace the earlier conversation by a summary, for the model" },
  { name: "/stop", hint: "stop the turn and pause the queue" },
  { name: "/resume", hint: "let the queue go on" },
];

export interface Completion {
  readonly label: string;
  readonly hint: string;
  readonly accept: () => void;
}

/** The part of the text before the cursor that a completion replaces. */
export interface Word {
  readonly text: string;
  readonly start: number;
}

/** What a completion does with the message box. */
export interface CompletionTarget {
  readonly replaceWord: (replacement: string) => void;
  readonly attach: (attachment: Attachment) => void;
}

/** The word at the cursor; in the first line of a slash command, everything before the cursor. */
export function wordAt(text: string, cursor: number): Word {
  const isCommand = text.startsWith("/") && !text.slice(0, cursor).includes("\n");
  const lastSpace = Math.max(text.lastIndexOf(" ", cursor - 1), text.lastIndexOf("\n", cursor - 1));
  const start = isCommand ? 0 : lastSpace + 1;
  return { text: text.slice(start, cursor), start };
}

export function isSlashCommand(text: string): boolean {
  return SLASH_COMMANDS.some(({ name }) => name === text);
}

/** `paths`: the files that the extension found for the word after `@`. */
export function completionsFor(
  word: string,
  text: string,
  paths: readonly string[],
  target: CompletionTarget,
): readonly Completion[] {
  if (word.startsWith("/") && text.startsWith("/")) return commandCompletions(word, target);
  return word.startsWith("@") ? attachmentCompletions(word.slice(1).toLowerCase(), paths, target) : [];
}

function commandCompletions(word: string, { replaceWord }: CompletionTarget): readonly Completion[] {
  return SLASH_COMMANDS.filter(({ name }) => name.startsWith(word) && name !== word).map(({ name, hint }) => {
    return { label: name, hint, accept: () => replaceWord(name) };
  });
}

function attachmentCompletions(
  query: string,
  paths: readonly string[],
  { replaceWord, attach }: CompletionTarget,
): readonly Completion[] {
  const special = (label: string, hint: string, kind: "attachSelection" | "attachProblems"): Completion => ({
    label,
    hint,
    accept: () => {
      replaceWord("");
      postToExtension({ kind });
    },
  });
  const specials = [
    special("@selection", "the text selected in the editor", "attachSelection"),
    special("@problems", "the problems that the editor reports", "attachProblems"),
  ];
  const files = paths.slice(0, FILES_SHOWN_MAX).map((path) => ({
    label: `@${path}`,
    hint: "file",
    accept: () => {
      replaceWord(`@${path} `);
      attach({ kind: "file", path });
    },
  }));
  return [...specials.filter(({ label }) => label.slice(1).startsWith(query)), ...files];
}
