/** Gives the test process a page, before DOMPurify is loaded: it takes the page that it finds then. */
import { JSDOM } from "jsdom";

Object.assign(globalThis, { window: new JSDOM("").window });
