/** How full the model's context is, and what the session costs. The tooltip has the numbers. */
import type { JSX } from "preact";
import type { Usage } from "../../protocol";

export function UsageMeter({ usage }: { readonly usage: Usage }): JSX.Element | null {
  const { context, window, cost, billed, complete } = usage;
  if (context === 0 && cost === undefined && billed.output === 0) return null;
  const share = window === undefined ? undefined : Math.min(1, context / window);
  const text = description(usage);
  return (
    <span class="meter" title={text} role="img" aria-label={text}>
      {share === undefined ? shortTokenCount(context) : <progress max={1} value={share} />}
      {cost !== undefined && <span>{`${cost.amount} ${cost.currency}${complete ? "" : "+"}`}</span>}
    </span>
  );
}

function description({ context, window, billed, complete, auxiliary }: Usage): string {
  const limit = window === undefined ? "" : ` of ${window.toLocaleString()}`;
  const parts = [
    `${context.toLocaleString()}${limit} tokens in the last request`,
    `${billed.input.toLocaleString()} sent and ${billed.output.toLocaleString()} received in this session`,
    ...(auxiliary === undefined
      ? []
      : [`of these ${(auxiliary.input + auxiliary.output).toLocaleString()} for summaries and titles`]),
    ...(complete ? [] : ["some requests reported no numbers, so the total is higher"]),
  ];
  return parts.join("; ");
}

function shortTokenCount(count: number): string {
  return count < 1_000 ? `${count} tokens` : `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k tokens`;
}
