// The edge of a fault: what cannot be shown is replaced by something simpler, and everything around it stays.
//
// Without it the whole tree would stop where it is, half of one Session and half of another.

import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";

interface GuardedProps {
  children: ComponentChildren;
  /** Stands in the place of what failed. It must not fail itself. */
  instead: ComponentChildren;
}

export function Guarded({ children, instead }: GuardedProps) {
  const [fault] = useErrorBoundary((cause) => console.warn("Not shown:", cause));
  return <>{fault === undefined ? children : instead}</>;
}
