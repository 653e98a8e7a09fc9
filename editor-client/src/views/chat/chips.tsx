/** What is attached, as chips: in the box with a way to take it out, in a message and in the queue without. */
import type { JSX } from "preact";
import { attachmentName } from "../../attachments";
import type { Attachment } from "../../protocol";
import { Icon } from "./icons";

interface Props {
  readonly attachments: readonly Attachment[];
  readonly remove?: (attachment: Attachment) => void;
}

export function Chips({ attachments, remove }: Props): JSX.Element | null {
  if (attachments.length === 0) return null;
  return (
    <ul class="chips" aria-label="Attached">
      {attachments.map((attachment) => {
        const name = attachmentName(attachment);
        return (
          <li class="chip" key={name} title={name}>
            <Icon name="file" />
            <span class="chip-name">{name}</span>
            {remove !== undefined && (
              <button type="button" class="chip-close" aria-label={`Remove ${name}`} onClick={() => remove(attachment)}>
                <Icon name="close" />
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
