// Returns the contrast (WCAG 2.2) of every visible text, and of the lines of charts, with what is
// behind it. Colours are read as computed; layers that are half transparent are blended.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();

  function rgba(color) {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  }

  function over(top, below) {
    const [, , , alpha] = top;
    return [0, 1, 2].map((i) => top[i] * alpha + below[i] * (1 - alpha)).concat(1);
  }

  function behind(element) {
    const layers = [];
    for (let at = element; at instanceof Element; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), rgba("Canvas"));
  }

  function luminance(color) {
    const [r, g, b] = color.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(front, back) {
    const [dark, bright] = [luminance(over(front, back)), luminance(back)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  }

  const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const words = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !isShown(parent) || parent.closest("script, style, [disabled]")) continue;
    const style = getComputedStyle(parent);
    const isDrawn = parent.closest("svg") !== null;
    const color = isDrawn ? style.fill : style.color;
    const back = behind(isDrawn ? parent.closest("svg") : parent);
    const isOnShape = isDrawn && parent.matches(".on-disc, .on-mark");
    if (!isOnShape) words.set(`${color} ${back} ${parent.className}`, [text.slice(0, 40), color, back]);
  }
  const texts = [...words.values()].map(([text, color, back]) => (
    { text, color, contrast: contrast(rgba(color), back) }));
  const lines = [...document.querySelectorAll(".series:not(.faint) polyline, .axis, .cursor")]
    .filter(isShown)
    .map((line) => {
      const color = getComputedStyle(line).stroke;
      return { color, contrast: contrast(rgba(color), behind(line.closest("svg"))) };
    });
  return { texts, lines };
}
