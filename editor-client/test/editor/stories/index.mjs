// All stories by name: {tell(stage), settings?(stage)}. One with settings is told alone, with just these.
import { chat } from "./chat.mjs";
import { delivery } from "./delivery.mjs";
import { first } from "./first.mjs";
import { recovery } from "./recovery.mjs";

export const stories = { ...first, ...recovery, ...delivery, ...chat };
