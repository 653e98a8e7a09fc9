/**
 * Decisions on uncertain effects, the same from the lightbulb, the list, the chat and the palette.
 *
 * Every action goes by a server command and names exactly what was shown; what is no longer so is refused by the
 * server and told here. Inspect opens the texts side by side: before ↔ intended, and intended ↔ now. The finding
 * comes with the decisions that the server offers, each based on that very inspection.
 */
import * as vscode from "vscode";
import type { Action, Commands, Inspection, ResolveResult, Uncertain } from "./protocol";
import type { Desk, Wire } from "./desk";
import { isAnswer } from "./desk";
import type { Looks } from "./looks";
import { ACTION, subject, untitled, verb } from "./words";

const DECISIONS: readonly Action[] = ["confirm", "reject", "waive", "restore", "retry"];
export const RESOLVING = new Set<string>(["inspect", ...DECISIONS].map((action) => `steadyhand.recovery.${action}`));

/** What a resolving command names; the server compares all of it. */
type Named = Commands["steadyhand.recovery.confirm"]["arguments"][0];

export class Recovery {
  /** the newest inspection of each attempt that this window saw */
  private readonly seen = new Map<string, Inspection>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onInspected = this.changed.event;

  constructor(
    private readonly wire: Wire,
    private readonly desk: () => Desk,
    private readonly looks: Looks,
  ) {}

  inspectionOf(attemptId: string): Inspection | undefined {
    return this.seen.get(attemptId);
  }

  /** From the list or the chat: decide on what is shown there; they show the finding and the way on themselves. */
  async act(action: Action, uncertain: Uncertain): Promise<void> {
    const { sessionId, attemptId, inspection } = uncertain;
    const named: Named = { sessionId, attemptId, ...(inspection === undefined || action === "inspect" ? {} : { inspectionId: inspection.inspectionId }) };
    await this.run(action, () => this.wire.command(`steadyhand.recovery.${action}`, named), false);
  }

  /** From a code action, a lens or another extension: `next` sends the command as it was given. */
  async around(command: string, next: () => Promise<unknown>): Promise<unknown> {
    const action = command.slice(command.lastIndexOf(".") + 1) as Action;
    return this.run(action, next as () => Promise<ResolveResult>);
  }

  async endSurvivors(uncertain: Uncertain): Promise<void> {
    const { sessionId, attemptId, inspection } = uncertain;
    if (inspection === undefined) return;
    try {
      const { ended, left } = await this.wire.command("steadyhand.recovery.endSurvivors", { sessionId, attemptId, inspectionId: inspection.inspectionId });
      void vscode.window.showInformationMessage(`Ended: ${ended}. Still there: ${left}.`);
    } catch (error) {
      tell(error);
      return;
    }
    await this.act("inspect", uncertain); // what was shown as running is looked at anew
  }

  private async run(action: Action, send: () => Promise<ResolveResult>, offers = true): Promise<ResolveResult | undefined> {
    try {
      const result = await send();
      if (result.inspection !== undefined) this.keep(result.inspection);
      this.desk().snapshotIs(result.snapshot);
      if (action === "inspect" && result.inspection !== undefined) {
        await this.looks.open(result.inspection);
        if (offers) this.offerFrom(result, result.inspection);
      }
      return result;
    } catch (error) {
      const looked = isAnswer(error) ? (error.data as { inspection?: Inspection } | undefined)?.inspection : undefined;
      if (looked !== undefined) this.keep(looked);
      tell(error);
      return undefined;
    }
  }

  private keep(inspection: Inspection): void {
    this.seen.set(inspection.attemptId, inspection);
    this.changed.fire();
  }

  private offerFrom({ snapshot }: ResolveResult, inspection: Inspection): void {
    const uncertain = [...snapshot.calls, ...snapshot.settled].find((one) => one.attemptId === inspection.attemptId);
    // The message outlives many things; the action it carries names its own inspection, so a late click is refused.
    void this.offer(inspection, uncertain, snapshot.sessionId, (uncertain?.actions ?? []).filter((action) => DECISIONS.includes(action)));
  }

  private async offer(inspection: Inspection, uncertain: Uncertain | undefined, sessionId: string, offered: readonly Action[]): Promise<void> {
    const more = inspection.survivors.length > 0 ? [`Still running: ${inspection.survivors.map((one) => one.command).join(", ")}.`] : [];
    const said = uncertain === undefined ? inspection.text : `${verb(uncertain.tool)} ${subject(uncertain)}. ${untitled(inspection.text, uncertain.title)}`;
    const text = [said, ...more].join(" ");
    const chosen = await vscode.window.showInformationMessage(text, ...offered.map((action) => ACTION[action]));
    const action = offered.find((one) => ACTION[one] === chosen);
    if (action === undefined) return;
    const named: Named = { sessionId, attemptId: inspection.attemptId, inspectionId: inspection.inspectionId };
    await this.run(action, () => this.wire.command(`steadyhand.recovery.${action}`, named));
  }
}

function tell(error: unknown): void {
  if (error instanceof vscode.CancellationError) return;
  void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
}
