/** What is under review, as places in files: the next and the previous one, and what is at a line. Pure. */
import type { Range, ReviewFile } from "../protocol";
import type { StoreAction } from "./actions";

/** A hunk that waits for a decision and is in a file. Without a range it is the whole file. */
export interface Change {
  readonly uri: string;
  readonly hunkId: string;
  readonly range?: Range;
}

export interface Place {
  readonly uri: string;
  readonly line: number;
}

/** In the order of the files and of the lines. What is gone or in a deleted file has no place. */
export function openChanges(files: readonly ReviewFile[]): readonly Change[] {
  return files.flatMap(({ uri, change, hunks }) =>
    hunks
      .filter(({ state }) => state === "new" && change !== "deleted")
      .map(({ hunkId, after }) => ({ uri, hunkId, ...(after === undefined ? {} : { range: after }) })),
  );
}

export function lineOf(change: Change): number {
  return change.range?.start.line ?? 0;
}

/** Whether only lines were removed there. */
export function isRemoval({ range }: Change): boolean {
  return range !== undefined && range.start.line === range.end.line;
}

/** The change at a line, as the server places its code actions: a removal is at the lines on both sides. */
export function changeAt(changes: readonly Change[], place: Place): Change | undefined {
  return changes.find((change) => {
    if (change.uri !== place.uri) return false;
    if (change.range === undefined) return true;
    const { start, end } = change.range;
    const [first, last] = isRemoval(change) ? [start.line - 1, start.line] : [start.line, end.line - 1];
    return first <= place.line && place.line <= last;
  });
}

/** The next change (`step` 1) or the previous one (−1) from a place, around the end; undefined: there is none. */
export function neighbour(changes: readonly Change[], place: Place | undefined, step: 1 | -1): Change | undefined {
  const inOrder = step === 1 ? changes : [...changes].reverse();
  const isHere = (change: Change): boolean => change.uri === place?.uri;
  const beyond = inOrder.find((one) => isHere(one) && (lineOf(one) - (place?.line ?? 0)) * step > 0);
  if (beyond !== undefined) return beyond;
  const here = inOrder.findLastIndex(isHere);
  return inOrder[here + 1] ?? inOrder[0];
}

/** Whether an action may change what is under review in the active session. */
export function concernsReview(action: StoreAction): boolean {
  switch (action.kind) {
    case "sessionOpened":
    case "recoveryChanged":
      return true;
    case "turnEvent": {
      const { event } = action.turnEvent;
      return event.kind === "ended" || (event.kind === "call" && event.call.files !== undefined);
    }
    default:
      return false;
  }
}
