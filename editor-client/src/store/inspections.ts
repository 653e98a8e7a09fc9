/** The newest inspection of each attempt that this window received. A reload of the window forgets them. */
import type { Inspection } from "../protocol";

export class Inspections {
  private readonly byAttempt = new Map<string, Inspection>();
  private readonly listeners: (() => void)[] = [];

  get(attemptId: string): Inspection | undefined {
    return this.byAttempt.get(attemptId);
  }

  add(inspection: Inspection): void {
    this.byAttempt.set(inspection.attemptId, inspection);
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}
