import { useEffect } from 'preact/hooks';

import { hasServer } from '../api/client';

/** Sets the title of the tab; undefined leaves it. A report keeps its own. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title !== undefined && hasServer()) document.title = title;
  }, [title]);
}
