// All scenarios by name: {run(editor), settings?(editor)}. A scenario with settings runs alone, with these settings.
import { chat } from "./chat.mjs";
import { delivery } from "./delivery.mjs";
import { first } from "./first.mjs";
import { recovery } from "./recovery.mjs";
import { review } from "./review.mjs";

export const scenarios = { ...first, ...recovery, ...review, ...delivery, ...chat };
