/** A view of a sweep: the part of the URL after the question mark, under a name. */
export interface SavedView {
  name: string;
  query: string;
}

export function parseViews(text: string | undefined): SavedView[] {
  try {
    const views = JSON.parse(text ?? '[]') as unknown;
    if (!Array.isArray(views)) return [];
    return views.filter(
      (view: Partial<SavedView>): view is SavedView =>
        typeof view?.name === 'string' && typeof view.query === 'string',
    );
  } catch {
    return [];
  }
}

/** The views with one more, which replaces another one of this name. */
export function withView(views: readonly SavedView[], view: SavedView): SavedView[] {
  const others = views.filter(({ name }) => name !== view.name);
  return [...others, view].sort((a, b) => a.name.localeCompare(b.name));
}

/** The views with another name for one of them; the name replaces another view of this name. */
export function renamedView(
  views: readonly SavedView[],
  view: SavedView,
  name: string,
): SavedView[] {
  const others = views.filter((each) => each.name !== view.name);
  return withView(others, { ...view, name });
}
