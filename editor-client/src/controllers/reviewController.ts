/**
 * The review of a session's changes: a list of its files, the next and the previous change, and keep or undo for a
 * change, a file or everything.
 *
 * The server decides what is under review and what it can undo; each decision names the epoch that the user saw. What
 * it leaves as it was is said with the reason. The list is read again after each turn and each decision, and when the
 * text of a listed file changes; while it is being read, later reasons to read it lead to one more reading.
 */
import type { ServerApi } from "../client/serverApi";
import { leftText, reviewItem, undoAllQuestion, undoWholeQuestion } from "../labels";
import type { ReviewFile, ReviewLeft, ReviewResolveParams } from "../protocol";
import type { StoreAction } from "../store/actions";
import type { Place } from "../store/review";
import { changeAt, concernsReview, lineOf, neighbour, openChanges } from "../store/review";
import type { Store } from "../store/store";
import type { WritableSession } from "./writableSession";
import { writableSession } from "./writableSession";

/** What the controller needs of the editor. */
export interface ReviewUi {
  /** Let the user choose a file; undefined: none was chosen. */
  pick(items: readonly ReviewChoice[]): Promise<ReviewChoice | undefined>;
  /** Let the user choose one of these words; undefined: none was chosen. */
  ask(text: string, words: readonly string[]): Promise<string | undefined>;
  /** Ask before something that is not a single choice; false: the user does not want it. */
  confirm(question: string, word: string): Promise<boolean>;
  open(uri: string): Promise<void>;
  /** Show a line of a file, and put the cursor there. */
  reveal(place: Place): Promise<void>;
  /** Where the cursor is; undefined: in no file. */
  position(): Place | undefined;
  /** The URI as the editor spells it. */
  spell(uri: string): string;
  inform(text: string): void;
}

export interface ReviewChoice {
  readonly label: string;
  readonly description: string;
  readonly file: ReviewFile;
}

type Selector = Pick<ReviewResolveParams, "hunkIds" | "uri" | "all">;

const NOTHING = "No change of this session is waiting for a review.";
const NOT_HERE = "No change at the cursor is waiting for a review.";
const KEEP = "Keep";
const UNDO = "Undo";
const UNDO_ALL = "Undo all";
const COMMANDS = { keep: "steadyhand.review.keep", undo: "steadyhand.review.undo" };

export class ReviewController {
  private reading: Promise<void> | undefined;
  private isStale = false;

  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly ui: ReviewUi,
  ) {}

  /** List the changed files; open the chosen one and offer to keep or undo its change. */
  async show(): Promise<void> {
    const files = await this.openFiles();
    if (files === undefined) return;
    const chosen = await this.ui.pick(files.map((file) => ({ ...reviewItem(file), file })));
    if (chosen === undefined) return;
    if (chosen.file.change !== "deleted") await this.ui.open(chosen.file.uri);
    const word = await this.ui.ask(`${chosen.label}: ${chosen.description}`, [KEEP, UNDO]);
    const hunkIds = chosen.file.hunks.filter(isOpen).map((hunk) => hunk.hunkId);
    if (word === KEEP) await this.decide("keep", { hunkIds });
    if (word === UNDO) await this.decide("undo", { hunkIds });
  }

  /** Keep or undo everything that is under review in the session; an undo is confirmed first. */
  async decideAll(action: "keep" | "undo"): Promise<void> {
    const found = this.session();
    const files = found === undefined ? undefined : await this.openFiles();
    if (files === undefined) return;
    if (action === "undo" && !(await this.ui.confirm(undoAllQuestion(files.length), UNDO_ALL))) return;
    await this.decide(action, { all: true });
  }

  /** Go to the next change of the session (`step` 1) or to the previous one. */
  async go(step: 1 | -1): Promise<void> {
    await this.refresh();
    const found = neighbour(openChanges(this.store.state.review), this.ui.position(), step);
    if (found === undefined) this.ui.inform(NOTHING);
    else await this.ui.reveal({ uri: found.uri, line: lineOf(found) });
  }

  /** Keep or undo one change. `hunkId`: of a lens; undefined: the change at the cursor. */
  async decideOne(action: "keep" | "undo", hunkId?: string): Promise<void> {
    const place = this.ui.position();
    if (hunkId === undefined) await this.refresh();
    const atCursor = place === undefined ? undefined : changeAt(openChanges(this.store.state.review), place);
    const chosen = hunkId ?? atCursor?.hunkId;
    if (chosen === undefined) {
      this.ui.inform(NOT_HERE);
      return;
    }
    // With a key the cursor may be anywhere in a file that is one change, and the undo of a new file deletes it.
    const isWhole = hunkId === undefined && atCursor?.range === undefined;
    const question = isWhole && place !== undefined ? undoWholeQuestion(place.uri) : undefined;
    if (action === "undo" && question !== undefined && !(await this.ui.confirm(question, UNDO))) return;
    await this.decide(action, { hunkIds: [chosen] });
  }

  /** Read what is under review again, if this action may have changed it. */
  async storeChanged(action: StoreAction): Promise<void> {
    if (concernsReview(action)) await this.refresh();
  }

  /** Whether the session changed this file, so that places in it depend on its text. */
  lists(uri: string): boolean {
    return this.store.state.review.some((file) => file.uri === uri);
  }

  /** After a decision by a code action: say what was left, and read the list again. */
  async intercept(command: string, send: () => Promise<unknown>): Promise<unknown> {
    const action = command === COMMANDS.keep ? "keep" : command === COMMANDS.undo ? "undo" : undefined;
    const result = await send();
    if (action !== undefined) {
      this.sayLeft(action, (result as { readonly left: readonly ReviewLeft[] }).left);
      await this.refresh();
    }
    return result;
  }

  /** Read the list into the store. A reading that has begun is followed by one more. */
  async refresh(): Promise<void> {
    this.isStale = true;
    // Again where it became stale after the reading had looked for that the last time.
    while (this.isStale) {
      this.reading ??= this.readWhileStale().finally(() => (this.reading = undefined));
      await this.reading;
    }
  }

  private async readWhileStale(): Promise<void> {
    while (this.isStale) {
      this.isStale = false;
      const sessionId = this.store.activeId;
      if (sessionId === undefined || this.store.state.connection.state !== "ready") return;
      try {
        const { files } = await this.list(sessionId);
        const spelled = files.map((file) => ({ ...file, uri: this.ui.spell(file.uri) }));
        // To show the same again would draw the lenses anew, under the mouse of the user.
        if (JSON.stringify(spelled) === JSON.stringify(this.store.state.review)) continue;
        this.store.dispatch({ kind: "reviewListed", sessionId, files: spelled });
      } catch {
        // The session was closed or the server ended: the next start or session reads it again.
      }
    }
  }

  private sayLeft(action: "keep" | "undo", left: readonly ReviewLeft[]): void {
    if (left.length > 0) this.ui.inform(leftText(action, left));
  }

  private async decide(action: "keep" | "undo", selector: Selector): Promise<void> {
    const found = this.session();
    if (found === undefined) return;
    const params = { ...found, action, ...selector };
    const { left } = await this.server.request("steadyhand/review/resolve", params);
    this.sayLeft(action, left);
    await this.refresh();
  }

  /** The open session with its epoch; undefined: nothing can be decided in it, and the user was told why. */
  private session(): WritableSession | undefined {
    const found = writableSession(this.store.state.active?.session);
    if (typeof found !== "string") return found;
    this.ui.inform(found);
    return undefined;
  }

  /** The files with something under review; undefined: there is none, and the user was told. */
  private async openFiles(): Promise<readonly ReviewFile[] | undefined> {
    const sessionId = this.store.activeId;
    const { files } = sessionId === undefined ? { files: [] } : await this.list(sessionId);
    const found = files.filter((file) => file.hunks.some(isOpen));
    if (found.length > 0) return found;
    this.ui.inform(NOTHING);
    return undefined;
  }

  private list(sessionId: string): Promise<{ readonly files: readonly ReviewFile[] }> {
    return this.server.request("steadyhand/review/list", { sessionId });
  }
}

function isOpen(hunk: ReviewFile["hunks"][number]): boolean {
  return hunk.state === "new" || hunk.state === "gone";
}
