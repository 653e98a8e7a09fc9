/**
 * Detects a server that runs but does not answer: asks it a cheap question again and again and measures the answer.
 *
 * It only reports. It stops nothing, because a server that is busy may come back.
 */
export const SILENCE_MAX_MS = 5_000;
const INTERVAL_MS = 2_000;

export class LivenessCheck {
  private timer: NodeJS.Timeout | undefined;
  private sentMs: number | undefined;
  private isSilent = false;

  /** `probe`: sends the question; undefined when there is nothing to ask. `report`: called when the result changes. */
  constructor(
    private readonly probe: () => Promise<unknown> | undefined,
    private readonly report: (isSilent: boolean) => void,
  ) {}

  start(): void {
    this.stop();
    this.timer = setInterval(() => this.check(), INTERVAL_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.sentMs = undefined;
    this.isSilent = false;
  }

  private check(): void {
    if (this.sentMs !== undefined) {
      if (Date.now() - this.sentMs >= SILENCE_MAX_MS) this.setSilent(true);
      return;
    }
    const question = this.probe();
    if (question === undefined) return;
    const sentMs = Date.now();
    this.sentMs = sentMs;
    const onAnswer = (): void => {
      if (this.sentMs !== sentMs) return; // the check was started again
      this.sentMs = undefined;
      this.setSilent(false);
    };
    question.then(onAnswer, onAnswer);
  }

  private setSilent(isSilent: boolean): void {
    if (isSilent === this.isSilent) return;
    this.isSilent = isSilent;
    this.report(isSilent);
  }
}
