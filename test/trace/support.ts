// A disk in memory that can fail any call, end the process at it, or lose power; and a clock that a test moves.

import type { Clock } from "../../src/clock.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { TraceFile, TraceFs } from "../../src/trace/trace-fs.js";
import type { Trace, TraceLog, TraceRecord } from "../../src/trace/trace-store.js";

export type Fault =
  /** The call fails; `done` says whether its effect is there all the same. */
  | { kind: "error"; code: "EIO" | "ENOSPC" | "EROFS"; done: boolean; part: number }
  /** A write takes only a part. */
  | { kind: "short"; part: number }
  /** The process ends here, before or after the effect, or in the middle of a write. */
  | { kind: "crash"; done: boolean; part: number };

interface FileNode {
  kind: "file";
  bytes: Buffer;
  synced: Buffer;
  mtimeMs: number;
}
interface FolderNode {
  kind: "folder";
  entries: Map<string, Node>;
  synced: Map<string, Node>;
}
type Node = FileNode | FolderNode;

const folderNode = (): FolderNode => ({ kind: "folder", entries: new Map(), synced: new Map() });
const failure = (code: string) => Object.assign(new Error(`${code}: injected`), { code });

export class MemoryFs implements TraceFs {
  /** Asked at every call; the number counts calls from 0. */
  plan: (call: number, op: string, path: string) => Fault | undefined = () => undefined;
  calls = 0;
  openHandles = 0;
  crashed = false;
  readonly log: string[] = [];
  #root: FolderNode;
  #time = 0;

  constructor(root: FolderNode = folderNode()) {
    this.#root = root;
  }

  /** The disk as the next process finds it after this one ended. */
  afterKill(): MemoryFs {
    return new MemoryFs(
      copy(
        this.#root,
        (node) => [node.entries, node.entries],
        (file) => file.bytes,
      ),
    );
  }

  /** The disk after the power went: what was forced, and of the rest as much as `keep` says (0 to 1) or NULs in its place. */
  afterPowerFailure(keep: number, zeroed: boolean): MemoryFs {
    return new MemoryFs(
      copy(
        this.#root,
        (node) => [node.synced, node.synced],
        (file) => {
          const rest = file.bytes.subarray(file.synced.length);
          const kept = rest.subarray(0, Math.floor(rest.length * keep));
          return Buffer.concat([file.synced, zeroed ? Buffer.alloc(kept.length) : kept]);
        },
      ),
    );
  }

  /** A file's bytes, to look at or to damage. */
  file(path: string): FileNode {
    const node = this.#find(path);
    if (node.kind !== "file") throw failure("EISDIR");
    return node;
  }

  paths(folder = "", node: Node = this.#root): string[] {
    if (node.kind === "file") return [folder];
    return [...node.entries].flatMap(([name, child]) => this.paths(`${folder}/${name}`, child));
  }

  openToRead(path: string): Promise<TraceFile> {
    return this.#call("open", path, () => this.#handle(path, this.file(path)));
  }

  openToAppend(path: string): Promise<TraceFile> {
    return this.#call("open", path, () => this.#handle(path, this.file(path)));
  }

  create(path: string): Promise<TraceFile> {
    return this.#call("create", path, () => {
      const { folder, name } = this.#parent(path);
      const existing = folder.entries.get(name);
      if (existing?.kind === "folder") throw failure("EISDIR");
      const node = existing ?? { kind: "file", bytes: Buffer.alloc(0), synced: Buffer.alloc(0), mtimeMs: ++this.#time };
      node.bytes = Buffer.alloc(0);
      folder.entries.set(name, node);
      return this.#handle(path, node);
    });
  }

  readFile(path: string): Promise<Buffer> {
    return this.#call("readFile", path, () => Buffer.from(this.file(path).bytes));
  }

  stat(path: string): Promise<{ size: number; mtimeMs: number }> {
    return this.#call("stat", path, () => {
      const node = this.#find(path);
      return node.kind === "file" ? { size: node.bytes.length, mtimeMs: node.mtimeMs } : { size: 0, mtimeMs: 0 };
    });
  }

  list(folder: string): Promise<string[]> {
    return this.#call("list", folder, () => {
      const node = this.#find(folder);
      if (node.kind === "file") throw failure("ENOTDIR");
      return [...node.entries.keys()];
    });
  }

  makeFolder(path: string): Promise<void> {
    return this.#call("makeFolder", path, () => {
      let node = this.#root;
      for (const name of parts(path)) {
        const child = node.entries.get(name) ?? folderNode();
        if (child.kind === "file") throw failure("ENOTDIR");
        node.entries.set(name, child);
        node = child;
      }
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call("rename", from, () => {
      const source = this.#parent(from);
      const target = this.#parent(to);
      const node = source.folder.entries.get(source.name);
      if (node === undefined) throw failure("ENOENT");
      const there = target.folder.entries.get(target.name);
      if (there?.kind === "folder" && there.entries.size > 0) throw failure("ENOTEMPTY");
      source.folder.entries.delete(source.name);
      target.folder.entries.set(target.name, node);
    });
  }

  remove(path: string): Promise<void> {
    return this.#call("remove", path, () => {
      try {
        const { folder, name } = this.#parent(path);
        folder.entries.delete(name);
      } catch {} // Not there: no error, as rm with force.
    });
  }

  syncFolder(path: string): Promise<void> {
    return this.#call("syncFolder", path, () => {
      const node = this.#find(path);
      if (node.kind === "folder") node.synced = new Map(node.entries);
    });
  }

  #handle(path: string, node: FileNode): TraceFile {
    this.openHandles++;
    let open = true;
    const call = <T>(op: string, run: (part: number) => T): Promise<T> =>
      open ? this.#call(op, path, run) : Promise.reject(failure("EBADF"));
    return {
      write: (bytes) =>
        call("write", (part) => {
          const taken = Math.floor(bytes.length * part);
          node.bytes = Buffer.concat([node.bytes, bytes.subarray(0, taken)]);
          node.mtimeMs = ++this.#time;
          return taken;
        }),
      read: (into, position) => call("read", () => node.bytes.copy(into, 0, position)),
      truncate: (length) =>
        call("truncate", () => {
          const grown = Buffer.alloc(length);
          node.bytes.copy(grown);
          node.bytes = grown;
          node.mtimeMs = ++this.#time;
        }),
      sync: () =>
        call("sync", () => {
          node.synced = node.bytes;
        }),
      stat: () => call("fstat", () => ({ size: node.bytes.length, mtimeMs: node.mtimeMs })),
      close: () => {
        if (open) this.openHandles--;
        open = false;
        return this.#call("close", path, () => {});
      },
    };
  }

  async #call<T>(op: string, path: string, run: (part: number) => T): Promise<T> {
    await Promise.resolve();
    if (this.crashed) throw new Error("the process is dead");
    this.log.push(`${op} ${path}`);
    const fault = this.plan(this.calls++, op, path);
    if (fault === undefined) return run(1);
    if (fault.kind === "short") return run(op === "write" ? fault.part : 1);
    if (fault.kind === "crash") this.crashed = true;
    if (fault.done || op === "write") run(fault.done ? 1 : fault.part);
    throw fault.kind === "crash" ? new Error("the process is dead") : failure(fault.code);
  }

  #find(path: string): Node {
    let node: Node = this.#root;
    for (const name of parts(path)) {
      if (node.kind === "file") throw failure("ENOTDIR");
      const child: Node | undefined = node.entries.get(name);
      if (child === undefined) throw failure("ENOENT");
      node = child;
    }
    return node;
  }

  #parent(path: string): { folder: FolderNode; name: string } {
    const names = parts(path);
    const folder = this.#find(names.slice(0, -1).join("/"));
    if (folder.kind === "file") throw failure("ENOTDIR");
    return { folder, name: names.at(-1)! };
  }
}

const parts = (path: string): string[] => path.split("/").filter((part) => part !== "");

function copy(
  node: FolderNode,
  entriesOf: (node: FolderNode) => [Map<string, Node>, Map<string, Node>],
  bytesOf: (file: FileNode) => Buffer,
): FolderNode {
  const made = folderNode();
  for (const [name, child] of entriesOf(node)[0]) {
    const bytes = child.kind === "file" ? Buffer.from(bytesOf(child)) : Buffer.alloc(0);
    const twin: Node = child.kind === "file" ? { ...child, bytes, synced: bytes } : copy(child, entriesOf, bytesOf);
    made.entries.set(name, twin);
    made.synced.set(name, twin);
  }
  return made;
}

/** A clock that stands still until `advance`. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 6, 18);
  #timers: { at: number; run: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.now();
  }
  iso(): string {
    return new Date(this.#now).toISOString();
  }
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }
  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }
  advance(ms: number): void {
    this.#now += ms;
    const due = this.#timers.filter((timer) => timer.at <= this.#now);
    this.#timers = this.#timers.filter((timer) => timer.at > this.#now);
    for (const timer of due) timer.run();
  }
  get pending(): number {
    return this.#timers.length;
  }
}

export interface Warning {
  message: string;
  details: Record<string, unknown>;
}

export function collectingLog(): TraceLog & { warnings: Warning[] } {
  const warnings: Warning[] = [];
  return { warnings, warn: (details, message) => warnings.push({ message, details: details as Warning["details"] }) };
}

export const META = (n: number | string = 0): string =>
  `{"timestamp":"2026-07-18T00:00:00.000Z","type":"session_meta","payload":{"session_id":"s","n":${JSON.stringify(n)}}}`;

export const record = (n: number | string, pad = ""): string =>
  `{"timestamp":"2026-07-18T00:00:00.000Z","type":"event_msg","payload":{"type":"x","n":${JSON.stringify(n)},"pad":${JSON.stringify(pad)}}}`;

export async function readAll(trace: Trace, range: { from?: number; to?: number } = {}): Promise<TraceRecord[]> {
  const records: TraceRecord[] = [];
  for await (const batch of trace.read(range)) records.push(...batch);
  return records;
}

/** The records in a file's bytes; what is none is left out. */
export function parseRecords(bytes: Buffer): OmniMessage[] {
  return bytes
    .toString()
    .split("\n")
    .flatMap((line) => {
      try {
        return line === "" ? [] : [JSON.parse(line) as OmniMessage];
      } catch {
        return []; // Torn.
      }
    });
}

export const linesOf = async (trace: Trace, range: { from?: number; to?: number } = {}): Promise<string[]> =>
  (await readAll(trace, range)).map((one) => one.json);

/** Lets everything that waits only for promises go on. */
export const settle = async (): Promise<void> => {
  for (let i = 0; i < 200; i++) await Promise.resolve();
};
