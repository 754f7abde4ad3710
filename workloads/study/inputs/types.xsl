<?xml version="1.0"?>
<!-- Shared MIME types as HTML: by media, with their names in a few languages, patterns and relatives. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:m="http://www.freedesktop.org/standards/shared-mime-info" exclude-result-prefixes="m">
  <xsl:output method="html" indent="yes"/>
  <xsl:key name="type" match="m:mime-type" use="@type"/>
  <xsl:key name="media" match="m:mime-type" use="substring-before(@type, '/')"/>
  <xsl:key name="parent" match="m:mime-type" use="m:sub-class-of/@type"/>

  <xsl:template match="/m:mime-info">
    <html>
      <head><title>Types</title></head>
      <body>
        <xsl:for-each select="m:mime-type[generate-id() = generate-id(key('media', substring-before(@type, '/'))[1])]">
          <xsl:sort select="substring-before(@type, '/')"/>
          <xsl:variable name="media" select="substring-before(@type, '/')"/>
          <h1><xsl:value-of select="concat($media, ': ', count(key('media', $media)))"/></h1>
          <table>
            <xsl:apply-templates select="key('media', $media)">
              <xsl:sort select="m:comment[not(@xml:lang)]"/>
              <xsl:sort select="@type" order="descending"/>
            </xsl:apply-templates>
          </table>
        </xsl:for-each>
        <p><xsl:value-of select="count(//m:glob)"/> patterns, <xsl:value-of select="count(//m:match)"/> tests</p>
      </body>
    </html>
  </xsl:template>

  <xsl:template match="m:mime-type">
    <tr id="{translate(@type, '/+.', '---')}">
      <td><xsl:number value="position()" format="I"/></td>
      <td><xsl:value-of select="substring-after(@type, '/')"/></td>
      <td>
        <xsl:for-each select="m:comment[@xml:lang = 'de' or @xml:lang = 'fr' or starts-with(@xml:lang, 'p')]">
          <xsl:sort select="@xml:lang"/>
          <i lang="{@xml:lang}"><xsl:value-of select="normalize-space(.)"/></i>
        </xsl:for-each>
      </td>
      <td>
        <xsl:for-each select="m:glob">
          <xsl:call-template name="upper"><xsl:with-param name="text" select="@pattern"/></xsl:call-template>
          <xsl:if test="position() != last()">, </xsl:if>
        </xsl:for-each>
      </td>
      <td><xsl:apply-templates select="m:magic/m:match"/></td>
      <td>
        <xsl:for-each select="m:sub-class-of">
          <a href="#{translate(@type, '/+.', '---')}"><xsl:value-of select="key('type', @type)/m:comment[1]"/></a>
        </xsl:for-each>
        <xsl:value-of select="count(key('parent', @type))"/>
      </td>
    </tr>
  </xsl:template>

  <xsl:template match="m:match">
    <xsl:value-of select="concat(count(ancestor::m:match), ' ', @offset, ' ', @type, ' ', string-length(@value), '; ')"/>
    <xsl:apply-templates select="m:match"/>
  </xsl:template>

  <!-- A letter at a time, as style sheets without extensions do it. -->
  <xsl:template name="upper">
    <xsl:param name="text"/>
    <xsl:if test="$text != ''">
      <xsl:value-of select="translate(substring($text, 1, 1), 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')"/>
      <xsl:call-template name="upper"><xsl:with-param name="text" select="substring($text, 2)"/></xsl:call-template>
    </xsl:if>
  </xsl:template>
</xsl:stylesheet>
