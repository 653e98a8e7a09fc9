/**
 * Rewind: the user picks a turn that changed files, and whether files, conversation or both go back to before it.
 *
 * The server spares what somebody else wrote; what it left is said with the reason. A rewind of the conversation begins
 * a new epoch, and the session controller loads the chat again.
 */
import type { ServerApi } from "../client/serverApi";
import { rewindItem, rewoundText } from "../labels";
import type { CheckpointRewindParams, CheckpointTurn } from "../protocol";
import type { Store } from "../store/store";
import { writableSession } from "./writableSession";

type What = CheckpointRewindParams["what"];

/** What the controller needs of the editor. */
export interface RewindUi {
  /** Let the user choose one; undefined: none was chosen. */
  pick<Choice extends { readonly label: string; readonly description: string }>(
    items: readonly Choice[],
    title: string,
  ): Promise<Choice | undefined>;
  inform(text: string): void;
}

const KINDS: readonly { readonly label: string; readonly description: string; readonly what: What }[] = [
  { label: "Files and conversation", description: "as if the prompt had not been sent", what: "both" },
  { label: "Files", description: "the conversation stays, and the model is told", what: "files" },
  { label: "Conversation", description: "files stay, and the model is told", what: "conversation" },
];

export class RewindController {
  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly ui: RewindUi,
  ) {}

  /** Let the user choose a turn and what goes back, newest turn first. */
  async show(): Promise<void> {
    const found = writableSession(this.store.state.active?.session);
    if (typeof found === "string") {
      this.ui.inform(found);
      return;
    }
    const { sessionId, epoch } = found;
    const { turns } = await this.server.request("steadyhand/checkpoint/list", { sessionId });
    if (turns.length === 0) {
      this.ui.inform("No turn of this session changed a file.");
      return;
    }
    const turn = await this.ui.pick(items(turns), "Rewind to before this prompt");
    if (turn === undefined) return;
    const kind = await this.ui.pick(KINDS, "What goes back");
    if (kind === undefined) return;
    const params = { sessionId, epoch, turnId: turn.turnId, what: kind.what };
    this.ui.inform(rewoundText(await this.server.request("steadyhand/checkpoint/rewind", params)));
  }
}

function items(turns: readonly CheckpointTurn[]) {
  return [...turns].reverse().map((turn) => ({ ...rewindItem(turn), turnId: turn.turnId }));
}
