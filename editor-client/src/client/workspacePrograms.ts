/**
 * Where a program is, and whether it lies in a workspace folder. Whoever can write the folder chooses what such a
 * program does, so the extension starts none (row O4, case 140).
 *
 * A program lies in a folder if its path or any link on the way to the file does. A virtual environment in a workspace
 * shows why: its Python is a link to the system's, and nevertheless runs the code of the environment.
 */
import fs from "node:fs";
import path from "node:path";

const LINKS_MAX = 40; // as Linux allows in one path (path_resolution(7))

/** What the search looks at. `folders`: the workspace folders; `suffixes`: of programs, "" where they have none. */
export interface SearchPlaces {
  readonly searchPath: string;
  readonly suffixes: readonly string[];
  readonly folders: readonly string[];
}

/** `path`: absolute. `inside`: the program lies in the workspace folder `folder` and must not be started. */
export type Located = { readonly path: string } | { readonly inside: string; readonly folder: string };

/**
 * Find the program that `command` names: an absolute path, or a name on the search path. A name is looked for in the
 * folders outside of the workspace first. Relative folders of the search path are passed over: they would lead into
 * the workspace. Undefined: there is none.
 */
export function locateProgram(command: string, places: SearchPlaces): Located | undefined {
  if (path.isAbsolute(command)) return judge(command, places.folders);
  if (command !== path.basename(command)) return undefined;
  const found = places.searchPath
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .flatMap((folder) => places.suffixes.map((suffix) => path.join(folder, command + suffix)))
    .filter(isExecutable)
    .map((program) => judge(program, places.folders));
  return found.find((one) => "path" in one) ?? found[0];
}

/** The workspace folder in which a path lies, links followed; undefined: in none. */
export function folderOf(place: string, folders: readonly string[]): string | undefined {
  const steps = linkSteps(place);
  return folders.find((folder) => {
    const resolved = resolveOrKeep(folder);
    return steps.some((step) => isWithin(step, folder) || isWithin(step, resolved));
  });
}

/**
 * The first word of a command line that names a program, a file or a folder in a workspace folder; undefined: none
 * does. Arguments are read as paths, from every workspace folder on.
 */
export function wordInFolder(program: string, args: readonly string[], places: SearchPlaces): string | undefined {
  const located = locateProgram(program, places);
  if (located !== undefined && "inside" in located) return program;
  const paths = program === path.basename(program) ? args : [program, ...args];
  return paths.find((word) => places.folders.some((base) => isPlaceInFolder(path.resolve(base, word), places.folders)));
}

function isPlaceInFolder(place: string, folders: readonly string[]): boolean {
  return fs.existsSync(place) && folderOf(place, folders) !== undefined;
}

function judge(program: string, folders: readonly string[]): Located {
  const folder = folderOf(program, folders);
  return folder === undefined ? { path: program } : { inside: program, folder };
}

/** The path as given, and after each link at its end; the folders before the end are resolved. */
function linkSteps(place: string): string[] {
  const steps = [path.normalize(place)];
  let step = path.normalize(place);
  for (let links = 0; links < LINKS_MAX; links += 1) {
    step = path.join(resolveOrKeep(path.dirname(step)), path.basename(step));
    const target = readLink(step);
    steps.push(step);
    if (target === undefined) return steps;
    step = path.resolve(path.dirname(step), target);
    steps.push(step);
  }
  return steps;
}

function isWithin(place: string, folder: string): boolean {
  const relative = path.relative(folder, place);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

function resolveOrKeep(place: string): string {
  try {
    return fs.realpathSync(place);
  } catch {
    return path.normalize(place); // it does not exist, or its folders cannot be read
  }
}

function readLink(place: string): string | undefined {
  try {
    return fs.readlinkSync(place);
  } catch {
    return undefined; // it is no link
  }
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
