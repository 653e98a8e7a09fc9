/**
 * Decisions about uncertain effects: the same from the lightbulb, the list, the chat and the palette.
 *
 * Each decision is a server command that names the effect and the inspection that the user saw. If either is out of
 * date, the server refuses, and the user sees the reason. Inspect opens the content of the files: before ↔ intended and
 * intended ↔ now.
 */
import * as vscode from "vscode";
import type { ServerApi } from "../client/serverApi";
import { isServerError } from "../client/serverApi";
import type { InspectionDocuments } from "../editor/inspectionDocuments";
import { ACTION_LABELS, callSubject, callVerb, withoutTitle } from "../labels";
import type { Action, Commands, Inspection, ResolveResult, Snapshot, Uncertain } from "../protocol";
import type { Inspections } from "../store/inspections";
import type { Store } from "../store/store";
import type { SessionController } from "./sessionController";

const DECISIONS: readonly Action[] = ["confirm", "reject", "waive", "restore", "retry"];
const COMMAND_PREFIX = "steadyhand.recovery.";
const RECOVERY_COMMANDS = new Set(["inspect", ...DECISIONS].map((action) => `${COMMAND_PREFIX}${action}`));

/** What a command names. The server compares all of it with the present state. */
type EffectReference = Commands["steadyhand.recovery.confirm"]["arguments"][0];

export class RecoveryController {
  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly inspections: Inspections,
    private readonly sessions: SessionController,
    private readonly documents: InspectionDocuments,
  ) {}

  /** Decide about an effect in the list or in the chat. Both show the result themselves. */
  async decide(action: Action, uncertain: Uncertain): Promise<void> {
    const { sessionId, attemptId, inspection } = uncertain;
    const basis = inspection === undefined || action === "inspect" ? {} : { inspectionId: inspection.inspectionId };
    const reference: EffectReference = { sessionId, attemptId, ...basis };
    await this.run(action, () => this.server.command(`${COMMAND_PREFIX}${action}`, reference));
  }

  /** Decide about an effect of any session by its attempt, if it is known. */
  async decideById(action: Action, attemptId: string): Promise<void> {
    const { uncertain, settled, active } = this.store.state;
    const { calls = [], settled: settledHere = [] } = active?.snapshot ?? {};
    const found = [...uncertain, ...settled, ...calls, ...settledHere].find((one) => one.attemptId === attemptId);
    if (found !== undefined) await this.decide(action, found);
  }

  /** Run a server command from a code action, a lens or another extension. After Inspect a message offers decisions. */
  async intercept(command: string, send: () => Promise<unknown>): Promise<unknown> {
    if (!RECOVERY_COMMANDS.has(command)) return send();
    const action = command.slice(COMMAND_PREFIX.length) as Action;
    const result = await this.run(action, send as () => Promise<ResolveResult>);
    if (action === "inspect" && result?.inspection !== undefined) {
      // The message may stay for long. Its decisions name this inspection, so the server refuses a late one.
      void this.offerDecisions(result.snapshot, result.inspection);
    }
    return result;
  }

  /** End the processes of the effect that the last inspection found running, then inspect again. */
  async endSurvivors(uncertain: Uncertain): Promise<void> {
    const { sessionId, attemptId, inspection } = uncertain;
    if (inspection === undefined) return;
    const reference = { sessionId, attemptId, inspectionId: inspection.inspectionId };
    try {
      const { ended, left } = await this.server.command(`${COMMAND_PREFIX}endSurvivors`, reference);
      void vscode.window.showInformationMessage(`Processes ended: ${ended}. Still running: ${left}.`);
    } catch (error) {
      showProblem(error);
      return;
    }
    await this.decide("inspect", uncertain);
  }

  private async run(action: Action, send: () => Promise<ResolveResult>): Promise<ResolveResult | undefined> {
    try {
      const result = await send();
      if (result.inspection !== undefined) this.inspections.add(result.inspection);
      this.sessions.recoveryChanged(result.snapshot);
      if (action === "inspect" && result.inspection !== undefined) await this.documents.open(result.inspection);
      return result;
    } catch (error) {
      const data = isServerError(error) ? (error.data as { inspection?: Inspection } | undefined) : undefined;
      if (data?.inspection !== undefined) this.inspections.add(data.inspection);
      showProblem(error);
      return undefined;
    }
  }

  private async offerDecisions(snapshot: Snapshot, inspection: Inspection): Promise<void> {
    const { attemptId, inspectionId, survivors } = inspection;
    const uncertain = [...snapshot.calls, ...snapshot.settled].find((one) => one.attemptId === attemptId);
    const offered = (uncertain?.actions ?? []).filter((action) => DECISIONS.includes(action));
    const commands = survivors.map((one) => one.command).join(", ");
    const running = survivors.length > 0 ? ` Still running: ${commands}.` : "";
    const text = `${resultText(inspection, uncertain)}${running}`;
    const chosen = await vscode.window.showInformationMessage(text, ...offered.map((action) => ACTION_LABELS[action]));
    const action = offered.find((one) => ACTION_LABELS[one] === chosen);
    if (action === undefined) return;
    const reference: EffectReference = { sessionId: snapshot.sessionId, attemptId, inspectionId };
    await this.run(action, () => this.server.command(`${COMMAND_PREFIX}${action}`, reference));
  }
}

/** The result of the inspection, with the name that the chat and the list show instead of the title. */
function resultText(inspection: Inspection, uncertain: Uncertain | undefined): string {
  if (uncertain === undefined) return inspection.text;
  const { title } = uncertain;
  const name = `${callVerb(uncertain)} ${callSubject(uncertain)}`;
  const text = inspection.text.replaceAll(`“${title}”`, name);
  return text.startsWith(name) ? text : `${name}. ${withoutTitle(text, title)}`;
}

function showProblem(error: unknown): void {
  if (error instanceof vscode.CancellationError) return;
  void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
}
