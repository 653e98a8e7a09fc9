/** Attachments as chips: with a button that removes each in the message box, without it in messages and the queue. */
import type { JSX } from "preact";
import { showHiddenInValue } from "../../hiddenCharacters";
import type { Attachment } from "../../protocol";
import { attachmentName } from "../../store/attachments";
import { Icon } from "./icons";

interface Props {
  readonly attachments: readonly Attachment[];
  readonly remove?: (attachment: Attachment) => void;
}

export function AttachmentChips({ attachments, remove }: Props): JSX.Element | null {
  if (attachments.length === 0) return null;
  return (
    <ul class="chips" aria-label="Attachments">
      {attachments.map((attachment) => {
        const name = showHiddenInValue(attachmentName(attachment));
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
