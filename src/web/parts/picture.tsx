// A picture that came as data. One that is kept elsewhere is named and not asked for.

import { isPicture } from "../markdown.js";
import { dialog } from "../state.js";

export function Picture({ url, label }: { url: string; label: string }) {
  if (!isPicture(url)) {
    const isLink = /^https?:/i.test(url);
    return (
      <p class="file">
        {isLink ? (
          <a href={url} target="_blank" rel="noopener noreferrer">
            {url} (picture, not loaded)
          </a>
        ) : (
          "A picture of a kind that is not shown"
        )}
      </p>
    );
  }
  const show = () => {
    dialog.value = { kind: "picture", url };
  };
  return (
    <button type="button" class="picture" aria-label={`${label}, show larger`} onClick={show}>
      <img src={url} alt={label} />
    </button>
  );
}
