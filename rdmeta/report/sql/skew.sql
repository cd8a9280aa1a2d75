-- The leader skew by cluster and bin, the worst cluster first.
SELECT skew.*, whole.skew AS total
FROM skew
JOIN skew AS whole ON whole.cluster_id = skew.cluster_id AND whole.bin = -1
WHERE skew.bin >= 0
ORDER BY total DESC, skew.cluster_id
