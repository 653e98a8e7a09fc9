/** Holds the state of the extension. `dispatch` alone changes it and tells every listener. */
import type { StoreAction } from "./actions";
import { reduce } from "./reducer";
import type { State } from "./state";
import { INITIAL_STATE } from "./state";

export type StoreListener = (action: StoreAction, state: State) => void;

export class Store {
  private current: State;
  private readonly listeners: StoreListener[] = [];

  constructor(restored: Partial<State> = {}) {
    this.current = { ...INITIAL_STATE, ...restored };
  }

  get state(): State {
    return this.current;
  }

  /** Id of the session that the chat shows; undefined while it shows one that does not exist yet. */
  get activeId(): string | undefined {
    return this.current.active?.session.sessionId;
  }

  dispatch(action: StoreAction): void {
    this.current = reduce(this.current, action);
    for (const listener of this.listeners) listener(action, this.current);
  }

  /** Listeners live as long as the store, in the order in which they were added. */
  onChange(listener: StoreListener): void {
    this.listeners.push(listener);
  }
}
