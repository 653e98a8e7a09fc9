/**
 * The review of a session's changes: a list of its files, and keep or undo for one of them or for all.
 *
 * The server decides what is under review and what it can undo; each decision names the epoch that the user saw. What
 * it leaves as it was is said with the reason.
 */
import type { ServerApi } from "../client/serverApi";
import { leftText, reviewItem, undoAllQuestion } from "../labels";
import type { ReviewFile, ReviewResolveParams } from "../protocol";
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
  inform(text: string): void;
}

export interface ReviewChoice {
  readonly label: string;
  readonly description: string;
  readonly file: ReviewFile;
}

type Selector = Pick<ReviewResolveParams, "hunkIds" | "uri" | "all">;

const NOTHING = "No change of this session is waiting for a review.";
const KEEP = "Keep";
const UNDO = "Undo";
const UNDO_ALL = "Undo all";

export class ReviewController {
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

  private async decide(action: "keep" | "undo", selector: Selector): Promise<void> {
    const found = this.session();
    if (found === undefined) return;
    const params = { ...found, action, ...selector };
    const { left } = await this.server.request("steadyhand/review/resolve", params);
    if (left.length > 0) this.ui.inform(leftText(action, left));
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
