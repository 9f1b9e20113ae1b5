# Links that lead out of the page would lead nowhere from the reference: their text stays.
/^```cpp/,/^```$/!s,\[([^]]*)\]\([^)#][^):]*\),\1,g
