// Waiting for a view.

interface Viewed<V> {
  readonly view: V;
  readonly subscribe: (listener: () => void) => () => void;
}

/** Resolves once the view is as wanted. */
export function until<V>(following: Viewed<V>, wanted: (view: V) => boolean): Promise<V> {
  return new Promise((resolve) => {
    const look = () => {
      if (!wanted(following.view)) return;
      stop();
      resolve(following.view);
    };
    const stop = following.subscribe(look);
    look();
  });
}
